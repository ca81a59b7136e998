import { holdsNeedle } from '../common/sse/event-needles.js';
import { isDone, mayHoldDone } from '../common/sse/done-event.js';
import { endsEvent, EVENT_LIMIT_BYTES, SseDecoder } from '../common/sse/sse-decoder.js';
import type { SseEvent } from '../common/sse/sse-event.js';
import { SseFraming } from '../common/sse/sse-framing.js';
import type { JsonDocument } from '../common/json/json-document.js';
import type { StreamObserver, StreamTransform } from '../contracts/stream.js';
import { GuardedTransform } from './guarded-transform.js';
import { OutputRun } from './output-run.js';

const BLANK_LINE = Buffer.from('\n\n');
const LINE_FEED = Buffer.from('\n');
const CR = 13;
const NOTHING: readonly Buffer[] = [];
const ignore = (): void => {};

/**
 * Leads the bytes of one SSE answer through its transforms and past its observers. Owns the event that is still open;
 * lives as long as the answer. Never waits, and never looks into bytes nobody asked for: a chunk that holds no needle
 * leaves as it came, without being cut into events.
 */
export class StreamPipeline {
  readonly #transforms: readonly StreamTransform[];
  readonly #observers: readonly StreamObserver[];
  #failed: Set<StreamObserver> | null = null;
  readonly #onObserverError: (error: unknown, observer: StreamObserver) => void;
  readonly #decoder: SseDecoder;
  /** Where the client's copy of the stream stands; only kept up without transforms (else whole events are sent). */
  readonly #sent = new SseFraming();
  readonly #output = new OutputRun();
  readonly #stages: ((event: SseEvent) => void)[];
  #entry: (event: SseEvent) => void;
  #unterminated = false;
  /** What was sent ends in a CR, whose LF may be missing. Only kept up with transforms. */
  #endsInCr = false;
  /** The upstream says nothing more. */
  #ending = false;
  /** The first ones, of plugins. */
  readonly #guarded: number;
  /** `[DONE]`, and what came behind it: waits until those have given away what they hold, for that may fail. */
  #done: SseEvent[] | null = null;
  #flushing = false;
  #flushed = false;
  #behind: ((event: SseEvent) => void) | null = null;

  /** An observer that throws sees nothing more of this answer; `onObserverError` learns why. */
  constructor(
    transforms: readonly StreamTransform[],
    observers: readonly StreamObserver[],
    onObserverError: (error: unknown, observer: StreamObserver) => void = ignore,
    limitBytes = EVENT_LIMIT_BYTES,
  ) {
    this.#transforms = transforms;
    this.#observers = observers;
    this.#onObserverError = onObserverError;
    this.#decoder = new SseDecoder(limitBytes, transforms.length > 0 ? 'throw' : 'skip');
    const deliver = (event: SseEvent) => this.#deliver(event);
    if (transforms.length === 0) {
      this.#stages = [deliver];
      this.#entry = deliver;
      this.#guarded = 0;
      return;
    }
    this.#stages = transforms.map((transform, i) => (event) => this.#stage(transform, i, event));
    this.#stages.push(deliver);
    this.#guarded = transforms.filter((transform) => transform instanceof GuardedTransform).length;
    this.#entry = this.#stages[0]!;
    if (this.#guarded === 0) return;
    const behind = this.#stages[this.#guarded]!;
    const gated = (event: SseEvent): void => this.#gate(event, behind);
    this.#stages[this.#guarded] = gated;
    this.#behind = behind;
  }

  /** Shows every event to `admits` before any stage sees it; false: it is left out. For a stage that wants every event. */
  filter(admits: (event: SseEvent) => boolean): void {
    const entry = this.#entry;
    const filtered = (event: SseEvent): void => {
      if (admits(event)) entry(event);
    };
    this.#entry = filtered;
  }

  /** What the upstream has said of an event that is not over. */
  get openEvent(): SseEvent | undefined {
    return this.#decoder.open;
  }

  /** Whether the client may get other bytes than the upstream sent. */
  get transforming(): boolean {
    return this.#transforms.length > 0;
  }

  /** What was sent so far ends inside an event. */
  get midEvent(): boolean {
    return this.#transforms.length > 0 ? this.#unterminated : this.#sent.open;
  }

  /**
   * What has to be sent before an event of ours. A blank line (`\n\n`) closes an open event, whatever its line ends are; an
   * LF ends a line whose CR came alone: not each client takes a lone one for a line end.
   */
  get closing(): readonly Buffer[] {
    if (this.midEvent) return [BLANK_LINE];
    return (this.#transforms.length > 0 ? this.#endsInCr : this.#sent.endsInCr) ? [LINE_FEED] : NOTHING;
  }

  /**
   * What to send now for this chunk; `null` = nothing yet. Without transforms it is the very chunk.
   * @throws StreamLimitError where what must be read is more than may be held: too large an event, too many choices
   */
  push(chunk: Buffer): Buffer | readonly Buffer[] | null {
    if (this.#transforms.length === 0) {
      this.#sent.skip(chunk);
      if (this.#observers.length > 0) this.#watch(chunk);
      return chunk;
    }
    if (this.#flushed && !isBlank(chunk)) this.#flushed = false;
    const wanted = this.#transformsWant(chunk) || (this.#guarded > 0 && mayHoldDone(chunk));
    if (!wanted && this.#decoder.pass(chunk)) {
      this.#watchWhole(chunk);
      this.#endsInCr = chunk[chunk.length - 1] === CR;
      return chunk;
    }
    this.#decoder.push(chunk, this.#entry);
    if (this.#done !== null) this.#finish();
    return this.#output.take();
  }

  /**
   * The answer is over. When it broke (`broken`), an event that never became whole is not sent.
   * @throws StreamLimitError as `push` does; not when it broke
   */
  end(broken = false): readonly Buffer[] {
    if (!broken) this.#decoder.end(this.#entry);
    this.#ending = true;
    if (this.#guarded > 0) this.#finish();
    for (let i = this.#guarded; i < this.#transforms.length; i++)
      this.#transforms[i]!.flush(this.#stages[i + 1]!);
    const output = this.#transforms.length > 0 ? this.#output.take() : null;
    return output === null ? NOTHING : [output].flat();
  }

  /** A whole JSON answer goes the same way. */
  whole(answer: JsonDocument): void {
    for (const transform of this.#transforms) transform.whole(answer);
    for (const observer of this.#observers) this.#guard(observer, () => observer.whole?.(answer));
  }

  /** Bytes of a JSON answer that is too large to be held. */
  piece(bytes: Buffer): void {
    for (const observer of this.#observers)
      if (observer.piece !== undefined) this.#guard(observer, () => observer.piece?.(bytes));
  }

  /** Behind the transforms of plugins. */
  #gate(event: SseEvent, next: (event: SseEvent) => void): void {
    const waits = this.#done === null || this.#flushing ? isDone(event) : true;
    if (waits) (this.#done ??= []).push(event);
    else next(event);
  }

  /** The answer says that it is over, or is: plugins give away what they hold, then the client may hear of the end. */
  #finish(): void {
    const again = this.#flushed;
    this.#flushed = true;
    this.#flushing = true;
    try {
      for (let i = 0; i < this.#guarded && !again; i++) this.#transforms[i]!.flush(this.#stages[i + 1]!);
    } catch (error) {
      this.#done = null;
      throw error;
    } finally {
      this.#flushing = false;
    }
    const done = this.#done ?? [];
    this.#done = null;
    for (const event of done) this.#behind?.(event);
  }

  #transformsWant(chunk: Buffer): boolean {
    for (const transform of this.#transforms) if (holdsNeedle(chunk, transform.needles)) return true;
    return false;
  }

  #observersWant(chunk: Buffer): boolean {
    for (const observer of this.#observers) if (holdsNeedle(chunk, observer.needles)) return true;
    return false;
  }

  /** Bytes that are already on their way: keeps the open event, looks at whole ones. */
  #watch(chunk: Buffer): void {
    if (!this.#observersWant(chunk) && this.#decoder.pass(chunk)) return;
    this.#decoder.push(chunk, this.#entry);
  }

  /** A chunk of whole events that no transform wanted. */
  #watchWhole(chunk: Buffer): void {
    if (this.#observers.length === 0 || !this.#observersWant(chunk)) return;
    const decoder = new SseDecoder();
    decoder.push(chunk, (event) => this.#observe(event));
    decoder.end((event) => this.#observe(event));
  }

  #stage(transform: StreamTransform, index: number, event: SseEvent): void {
    const next = this.#stages[index + 1]!;
    if (holdsNeedle(event.raw, transform.needles)) transform.push(event, next);
    else next(event);
  }

  #deliver(event: SseEvent): void {
    if (this.#transforms.length > 0) {
      // Only the last event of an answer may lack its blank line; what a transform sends behind it must not join it.
      if (this.#unterminated) this.#output.add(BLANK_LINE);
      else if (this.#ending && this.#endsInCr) this.#output.add(LINE_FEED);
      this.#unterminated = !endsEvent(event.raw) && !isBlank(event.raw);
      this.#endsInCr = event.raw[event.raw.length - 1] === CR;
      this.#output.add(event.raw);
    }
    this.#observe(event);
  }

  #observe(event: SseEvent): void {
    for (const observer of this.#observers) {
      if (holdsNeedle(event.raw, observer.needles)) this.#guard(observer, () => observer.observe(event));
    }
  }

  #guard(observer: StreamObserver, look: () => void): void {
    if (this.#failed?.has(observer)) return;
    try {
      look();
    } catch (error) {
      (this.#failed ??= new Set()).add(observer);
      this.#onObserverError(error, observer);
    }
  }
}

/** A blank line of its own between two events, or the LF that came apart from its CR. */
function isBlank(raw: Buffer): boolean {
  return raw.length <= 2 && raw.every((byte) => byte === 10 || byte === 13);
}
