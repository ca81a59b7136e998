import { ChunkList } from '../../common/bytes/chunk-list.js';
import { internalError } from '../../common/errors/catalogue.js';
import { type BreakCause, streamInterrupted } from '../../common/errors/error-form.js';
import type { GatewayError } from '../../common/errors/gateway-error.js';
import { SseFraming } from '../../common/sse/sse-framing.js';
import { timerDelay } from '../../common/time/clock.js';
import type { HeartbeatConfig } from '../../config/gateway-config.js';
import type { ResponseSink } from '../response-sink.js';
import { chunkEvents, errorEvent, refusalEvent } from './in-band.js';
import { FirstMeaning } from './first-meaning.js';

/** A whole answer that must be put into another form is held up to here. */
const HOLD_LIMIT_BYTES = 64 * 1024 * 1024;

export interface HeartbeatOptions extends HeartbeatConfig {
  /** Head of a stream that is opened before anybody answers. */
  readonly headers: readonly string[];
  /** What the exchange waits for, such as `queued position=2`. */
  readonly state: () => string;
}

/**
 * A sink for a client that wants a stream and must not think that nobody is there: where nothing was said for a while it
 * opens the event stream and sends comments, until the first event that means something. What comes afterwards is put
 * into the form of a stream, errors too. Lives for one answer; owns its timer.
 */
export class HeartbeatSink implements ResponseSink {
  /** Bodies must come decoded: they may be put into the form of events. */
  readonly rewrites = true;
  /** `silent`: nothing was sent. `open`: by us. `passing`: an answer goes as it is. `json`, `refusal`: it cannot. */
  #phase: 'silent' | 'open' | 'passing' | 'json' | 'refusal' | 'over' = 'silent';
  #status = 0;
  readonly #held = new ChunkList();
  /** What passes, until it means something. */
  #framing: SseFraming | null = null;
  readonly #meaning = new FirstMeaning();
  #timer: NodeJS.Timeout;

  constructor(
    private readonly inner: ResponseSink,
    private readonly options: HeartbeatOptions,
  ) {
    this.#timer = setTimeout(() => this.#beat(), timerDelay(options.afterMs));
  }

  set onDrain(listener: (() => void) | null) {
    this.inner.onDrain = listener;
  }

  get refused(): 'client_gone' | Error | null {
    return this.inner.refused;
  }

  head(status: number, headers: string[]): void {
    const stream = status < 300 && isEventStream(headers);
    if (this.#phase === 'silent') {
      this.#phase = 'passing';
      if (stream) this.#framing = new SseFraming();
      else this.stop();
      this.inner.head(status, headers);
      return;
    }
    const told = whoAnswers(headers);
    if (told !== '') this.inner.write(Buffer.from(`: llm-proxy ${told}\n\n`));
    if (stream) {
      this.#phase = 'passing';
      this.#framing = new SseFraming();
    } else {
      this.#status = status;
      this.#phase = status >= 400 ? 'refusal' : 'json';
    }
  }

  flush(): void {
    if (this.#phase === 'passing') this.inner.flush();
  }

  write(bytes: Buffer | readonly Buffer[]): boolean {
    if (this.#phase === 'json' || this.#phase === 'refusal') {
      this.#hold(bytes);
      return true;
    }
    if (this.#phase === 'over') return true;
    if (this.#framing !== null) this.#look(bytes, this.#framing);
    return this.inner.write(bytes);
  }

  end(bytes?: Buffer | readonly Buffer[]): void {
    const phase = this.#phase;
    if (phase === 'json' || phase === 'refusal') {
      if (bytes !== undefined) this.#hold(bytes);
      const events =
        phase === 'json' ? chunkEvents(this.#held.chunks) : refusalEvent(this.#status, this.#held.chunks);
      this.#over();
      this.inner.end(events);
    } else if (phase !== 'over') {
      this.#over();
      this.inner.end(bytes);
    }
  }

  endInterrupted(bytes: Buffer): void {
    if (this.#phase === 'over') return;
    this.#over();
    this.inner.endInterrupted(bytes);
  }

  cut(cause: BreakCause): void {
    if (this.#phase === 'over') return;
    const inBand = this.#phase === 'json' || this.#phase === 'refusal';
    this.#over();
    if (inBand) this.inner.endInterrupted(streamInterrupted(cause));
    else this.inner.cut(cause);
  }

  error(error: GatewayError, headers: string[]): void {
    const phase = this.#phase;
    this.#over();
    if (phase === 'silent') this.inner.error(error, headers);
    else if (phase !== 'over') this.#endWith(error);
  }

  /** @throws what keeps this error from being written; the client hears then that the answer broke */
  #endWith(error: GatewayError): void {
    let event: Buffer;
    try {
      event = errorEvent(error);
    } catch (fault) {
      this.inner.endInterrupted(streamInterrupted('own_error'));
      throw fault;
    }
    this.inner.end(event);
  }

  close(): void {
    this.#over();
    this.inner.close();
  }

  /** Nothing more is to be said, whoever ended the answer. */
  stop(): void {
    clearTimeout(this.#timer);
  }

  #over(): void {
    this.stop();
    this.#phase = 'over';
    this.#held.take();
    this.#framing = null;
  }

  #beat(): void {
    const { everyMs, headers, state } = this.options;
    this.#timer = setTimeout(() => this.#beat(), timerDelay(everyMs));
    if (this.#phase === 'silent') {
      this.#phase = 'open';
      this.inner.head(200, [...headers]);
    }
    // Trap: a comment inside an event would cut that in two.
    if (this.#framing?.open !== true) this.inner.write(Buffer.from(`: ${state()}\n\n`));
  }

  #look(bytes: Buffer | readonly Buffer[], framing: SseFraming): void {
    for (const chunk of Buffer.isBuffer(bytes) ? [bytes] : bytes) {
      framing.skip(chunk);
      if (!this.#meaning.in(chunk)) continue;
      this.#framing = null;
      this.stop();
      return;
    }
  }

  #hold(bytes: Buffer | readonly Buffer[]): void {
    for (const part of Buffer.isBuffer(bytes) ? [bytes] : bytes) {
      this.#held.push(part);
    }
    if (this.#held.length > HOLD_LIMIT_BYTES) this.error(internalError(), []);
  }
}

function isEventStream(headers: readonly string[]): boolean {
  return /^text\/event-stream\b/i.test(valueOf(headers, 'content-type') ?? '');
}

/** `upstream=a provider=p attempts=1 queue_ms=0`; '' where that is not to be told. */
function whoAnswers(headers: readonly string[]): string {
  const upstream = valueOf(headers, 'x-llm-proxy-upstream');
  if (upstream === undefined) return '';
  const provider = valueOf(headers, 'x-llm-proxy-provider') ?? '';
  const attempts = valueOf(headers, 'x-llm-proxy-attempts') ?? '1';
  const queueMs = valueOf(headers, 'x-llm-proxy-queue-ms') ?? '0';
  return `upstream=${upstream} provider=${provider} attempts=${attempts} queue_ms=${queueMs}`;
}

function valueOf(headers: readonly string[], name: string): string | undefined {
  for (let i = 0; i + 1 < headers.length; i += 2) if (headers[i] === name) return headers[i + 1];
  return undefined;
}
