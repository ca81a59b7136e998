import { SseDecoder } from '../../src/common/sse/sse-decoder.js';
import type { SseEvent } from '../../src/common/sse/sse-event.js';
import type { StreamTransform } from '../../src/contracts/stream.js';
import type { AnswerReader } from '../../src/gateway/answer/answer-reader.js';
import { BarrierReader } from '../../src/gateway/answer/barrier.reader.js';
import { ContinuableReader } from '../../src/gateway/answer/continuable.reader.js';
import type { RelayedAnswer } from '../../src/gateway/continuation/relayed-answer.js';
import { SeamTransform } from '../../src/gateway/continuation/seam.transform.js';
import { RecordingHost } from './recording-host.js';

/** One answer from several upstreams, one after the other, without a network: what the client gets of it in the end. */
export class ContinuedStream {
  readonly hosts: RecordingHost[] = [];

  constructor(
    readonly answer: RelayedAnswer,
    private readonly transforms: () => StreamTransform[] = () => [],
  ) {}

  /** The next upstream. Who drives its reader says when it ends, and how. */
  next(echoes: readonly string[] = [this.answer.text]): { host: RecordingHost; reader: AnswerReader } {
    const { answer } = this;
    const seam = new SeamTransform(answer, echoes);
    const host = new RecordingHost(200, {}, [...this.transforms(), seam]);
    const commit = host.commit.bind(host);
    host.commit = (options) => {
      if (!answer.begun) answer.begin(200);
      commit(options);
    };
    this.hosts.push(host);
    const open = (): AnswerReader => new ContinuableReader(host, { answer, seam });
    return { host, reader: answer.begun ? new BarrierReader(host, open, null) : open() };
  }

  /** An upstream that says all this, in these pieces, and then breaks or ends. */
  say(pieces: readonly (string | Buffer)[], end: 'break' | 'end', echoes?: readonly string[]): RecordingHost {
    const { host, reader } = this.next(echoes);
    for (const piece of pieces) if (piece.length > 0) reader.data(Buffer.from(piece as string));
    if (end === 'end') reader.end();
    else reader.broken({ result: 'net_err', reason: 'reset' });
    reader.stop?.();
    return host;
  }

  get sent(): string {
    return Buffer.concat(this.hosts.flatMap(({ sink }) => sink.pieces)).toString();
  }

  get events(): SseEvent[] {
    const events: SseEvent[] = [];
    const decoder = new SseDecoder();
    decoder.push(Buffer.from(this.sent), (event) => events.push(event));
    decoder.end((event) => events.push(event));
    return events;
  }

  /** Text of one member of all deltas. */
  text(member = 'content'): string {
    return this.events
      .map(({ json }) => json?.array('choices')?.object(0)?.object('delta')?.string(member) ?? '')
      .join('');
  }

  get last(): RecordingHost {
    const last = this.hosts.at(-1);
    if (last === undefined) throw new Error('no upstream was asked yet');
    return last;
  }
}
