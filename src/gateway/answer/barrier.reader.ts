import { ChunkList } from '../../common/bytes/chunk-list.js';
import { CUT_IN_EVENT, isCut } from '../../common/sse/open-event.js';
import { SseDecoder, SseEventTooLargeError } from '../../common/sse/sse-decoder.js';
import type { SseEvent } from '../../common/sse/sse-event.js';
import type { AttemptFailure } from '../../contracts/exchange.js';
import type { ErrorJudge } from './error-judge.js';
import type { AnswerHost, AnswerReader } from './answer-reader.js';
import { isErrorEvent, MEANINGFUL, meaningOf } from './chunk-meaning.js';

/** What a stream says before its first meaningful event is held up to here. */
const HOLD_LIMIT_BYTES = 64 * 1024;

/**
 * Holds the beginning of an event stream until it means something, so that everything before can still fail over; then hands
 * it on, byte for byte, to the reader for it. Lives as long as the answer. An error before that is a failure.
 */
export class BarrierReader implements AnswerReader {
  readonly #held = new ChunkList();
  #decoder: SseDecoder | null = new SseDecoder(HOLD_LIMIT_BYTES);
  #verdict: 'wait' | 'open' | 'error' = 'wait';
  #error: SseEvent | null = null;
  #reader: AnswerReader | null = null;
  #over = false;

  constructor(
    private readonly host: AnswerHost,
    private readonly open: () => AnswerReader,
    private readonly judge: ErrorJudge | null,
    /** By the protocol. */
    private readonly meaning: (event: SseEvent) => number = meaningOf,
  ) {}

  data(chunk: Buffer): boolean {
    if (this.#reader !== null) return this.#reader.data(chunk);
    if (this.#over) return true;
    this.#held.push(chunk);
    this.#look(chunk);
    if (this.#failed()) return true;
    return this.#verdict === 'open' || this.#held.length > HOLD_LIMIT_BYTES ? this.#handOn() : true;
  }

  end(): void {
    if (this.#reader === null) {
      if (this.#over) return;
      const open = this.#verdict === 'wait' ? this.#decoder?.open : undefined;
      if (open !== undefined && isCut(open)) {
        this.#over = true;
        this.host.fail({ result: 'net_err', status: this.host.status, reason: CUT_IN_EVENT });
        return;
      }
      // A last event may lack its blank line.
      this.#decoder?.end((event) => this.#judge(event));
      if (this.#failed()) return;
      this.#handOn();
    }
    this.#reader?.end();
  }

  broken(failure: AttemptFailure): void {
    if (this.#reader === null) this.host.fail(failure);
    else this.#reader.broken(failure);
  }

  stop(): void {
    this.#over = true;
    this.#held.take();
    this.#reader?.stop?.();
  }

  drained(): boolean {
    return this.#reader?.drained?.() ?? false;
  }

  #look(chunk: Buffer): void {
    try {
      this.#decoder?.push(chunk, (event) => this.#judge(event));
    } catch (error) {
      if (!(error instanceof SseEventTooLargeError)) throw error;
      // Whatever it is, it is no heartbeat.
      this.#verdict = 'open';
    }
  }

  #judge(event: SseEvent): void {
    if (this.#verdict !== 'wait') return;
    const brings = this.meaning(event);
    if (isErrorEvent(brings)) {
      this.#verdict = 'error';
      this.#error = event;
    } else if ((brings & MEANINGFUL) !== 0) this.#verdict = 'open';
  }

  #handOn(): boolean {
    this.host.tokenSeen();
    this.#decoder = null;
    const reader = this.open();
    this.#reader = reader;
    let more = true;
    for (const chunk of this.#held.take()) more = reader.data(chunk);
    return more;
  }

  #failed(): boolean {
    if (this.#verdict !== 'error') return false;
    if (!this.#over) {
      this.#over = true;
      const body = this.#error?.payload;
      if (this.judge !== null && body !== undefined) this.judge.inside(body);
      else this.host.fail({ result: '5xx', status: this.host.status, reason: 'returned an error event' });
    }
    return true;
  }
}
