import type { AttemptFailure } from '../../contracts/exchange.js';
import type { AnswerHost, AnswerReader } from './answer-reader.js';

/** An answer that has no body by its status. */
export class EmptyAnswerReader implements AnswerReader {
  constructor(private readonly host: AnswerHost) {}

  data(): boolean {
    return true;
  }

  end(): void {
    this.host.commit({ kind: 'other', bodyChanged: true });
    this.host.sink.end();
    this.host.finish('ok');
  }

  broken(failure: AttemptFailure): void {
    this.host.fail(failure);
  }
}
