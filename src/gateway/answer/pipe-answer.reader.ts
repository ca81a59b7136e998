import type { AttemptFailure } from '../../contracts/exchange.js';
import type { AnswerHost, AnswerReader } from './answer-reader.js';

/** An answer that is neither JSON nor a stream of events, such as audio: passed on from its first byte, never read. */
export class PipeAnswerReader implements AnswerReader {
  constructor(
    private readonly host: AnswerHost,
    /** The body was decoded on its way here. */
    private readonly decoded: boolean,
  ) {}

  data(chunk: Buffer): boolean {
    this.#commit();
    return this.host.sink.write(chunk);
  }

  end(): void {
    this.#commit();
    this.host.sink.end();
    this.host.finish('ok');
  }

  broken(failure: AttemptFailure): void {
    if (!this.host.committed) {
      this.host.fail(failure);
      return;
    }
    this.host.sink.cut(this.host.breakCause);
    this.host.interrupted(failure);
  }

  #commit(): void {
    if (!this.host.committed) this.host.commit({ kind: 'other', bodyChanged: this.decoded });
  }
}
