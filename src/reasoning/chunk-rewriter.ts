import type { JsonDocument } from '../common/json/json-document.js';
import { EVENT_LIMIT_BYTES } from '../common/sse/sse-decoder.js';
import { SseEvent } from '../common/sse/sse-event.js';
import { StreamLimitError } from '../common/sse/stream-limit.js';
import { isEmptyValue, isJsonString, isNothing } from '../common/json/raw-value.js';
import type { ThinkPiece } from './choice-splitter.js';
import { EMPTY_STRING, joinJsonTexts } from './json-text.js';

/** What makes a chunk one of its answer; it may stand on each of several events, all else on exactly one. */
const IDENTITY = ['id', 'object', 'created', 'model', 'system_fingerprint', 'service_tier'] as const;
const IDENTITY_KEYS: ReadonlySet<string> = new Set<string>([...IDENTITY, 'choices']);
const CHOICE_KEYS: ReadonlySet<string> = new Set(['index', 'delta', 'finish_reason']);
const REASONING = 'reasoning_content';

type Member = readonly [key: string, value: Buffer];

/**
 * What the events of one event may be together: its identity stands in each of them, so that a large one could be sent
 * a hundred thousand times.
 */
const OUTPUT_LIMIT_BYTES = 4 * EVENT_LIMIT_BYTES;

/** Which answer an event belongs to, and what stands around its data: all that {@link ownEvent} takes of it, as bytes. */
export function frameOf(event: SseEvent): string {
  const { parts, separator } = identityOf(event);
  return event
    .withData([...parts, Buffer.from(separator === '{' ? '{}' : '}')])
    .withoutByteOrderMark()
    .raw.toString('latin1');
}

export function eventOfFrame(frame: string): SseEvent {
  return new SseEvent(Buffer.from(frame, 'latin1'));
}

/** An event like this one that carries nothing but these members of one choice's delta. */
export function ownEvent(like: SseEvent, index: Buffer | undefined, members: readonly Member[]): SseEvent {
  const { parts, separator: behind } = identityOf(like);
  let separator = behind;
  parts.push(Buffer.from(`${separator}"choices":[{`));
  if (index !== undefined) parts.push(Buffer.from('"index":'), index, Buffer.from(','));
  parts.push(Buffer.from('"delta":'));
  separator = '{';
  for (const [key, value] of members) {
    parts.push(Buffer.from(`${separator}"${key}":`), value);
    separator = ',';
  }
  parts.push(Buffer.from('},"finish_reason":null}]}'));
  return like.withData(parts);
}

function identityOf(event: SseEvent): { parts: Buffer[]; separator: string } {
  const parts: Buffer[] = [];
  let separator = '{';
  for (const key of IDENTITY) {
    const value = event.json?.raw(key);
    if (value === undefined) continue;
    parts.push(Buffer.from(`${separator}"${key}":`), value);
    separator = ',';
  }
  return { parts, separator };
}

export const memberOf = (piece: ThinkPiece): Member => [piece.thought ? REASONING : 'content', piece.value];

/**
 * Rewrites one upstream event: gathers the events that go before it and edits a fork of it. Lives for one event,
 * never touches the event itself.
 */
export class ChunkRewriter {
  readonly #before: SseEvent[] = [];
  #document: JsonDocument | null = null;
  #bytes = 0;

  constructor(private readonly event: SseEvent) {}

  /** Text that stands before what this event carries. */
  insert(index: Buffer | undefined, pieces: readonly ThinkPiece[]): void {
    for (const piece of pieces) this.#own(index, [memberOf(piece)]);
  }

  /** Puts the pieces in the place of a delta's content: the last one stays in this event, the others go before it. */
  replaceContent(
    at: number,
    index: Buffer | undefined,
    pieces: readonly ThinkPiece[],
    firstRole: boolean,
  ): void {
    this.#document ??= (this.event.json as JsonDocument).fork();
    const delta = this.#document.array('choices')?.object(at)?.object('delta');
    if (delta === undefined) return;
    const existing = delta.raw(REASONING);
    // A value that is no text cannot be appended to and must not be lost: our thoughts stay out of its way.
    const foreign = !isNothing(existing) && !isJsonString(existing);
    const rideAlong = foreign && pieces.at(-1)?.thought === true ? undefined : pieces.at(-1);
    const own = rideAlong === undefined ? pieces : pieces.slice(0, -1);
    for (const [i, piece] of own.entries()) {
      const members = i === 0 ? takeFromDelta(delta, piece, firstRole) : [memberOf(piece)];
      this.#own(index, members);
    }
    if (rideAlong?.thought === true) {
      const mine = delta.raw(REASONING);
      delta.setRaw(REASONING, isJsonString(mine) ? joinJsonTexts(mine, rideAlong.value) : rideAlong.value);
      delta.delete('content');
    } else delta.setRaw('content', rideAlong?.value ?? EMPTY_STRING);
  }

  #own(index: Buffer | undefined, members: readonly Member[]): void {
    const event = ownEvent(this.event, index, members);
    this.#bytes += event.raw.length;
    if (this.#bytes > OUTPUT_LIMIT_BYTES)
      throw new StreamLimitError('an event of the stream is too large when its thoughts are taken apart');
    this.#before.push(event);
  }

  /** @param keepsRole the event holds the first role of a choice and is sent whatever else became of it */
  emit(keepsRole: boolean, emit: (event: SseEvent) => void): void {
    const events = this.#before;
    if (this.#document === null) events.push(this.event);
    else if (keepsRole || carriesSomething(this.#document))
      events.push(this.event.withData(this.#document.parts()));
    for (const [i, event] of events.entries()) emit(i === 0 ? event : event.withoutByteOrderMark());
  }
}

/** Whether a chunk of one choice says anything beside its content. */
export function carriesMore(event: SseEvent): boolean {
  const document = event.json?.fork();
  document?.array('choices')?.object(0)?.object('delta')?.setRaw('content', EMPTY_STRING);
  return document === undefined || carriesSomething(document);
}

/** The first event of several takes the role and the reasoning that was there along. */
function takeFromDelta(delta: JsonDocument, piece: ThinkPiece, firstRole: boolean): Member[] {
  const members: Member[] = [];
  const role = delta.raw('role');
  if (firstRole && role !== undefined) {
    members.push(['role', role]);
    delta.delete('role');
  }
  const existing = delta.raw(REASONING);
  if (!isJsonString(existing) || isEmptyValue(existing)) return [...members, memberOf(piece)];
  delta.delete(REASONING);
  if (piece.thought) members.push([REASONING, joinJsonTexts(existing, piece.value)]);
  else members.push([REASONING, existing], memberOf(piece));
  return members;
}

/** Whether a chunk says more than which answer it belongs to. */
function carriesSomething(chunk: JsonDocument): boolean {
  for (const key of chunk.keys()) if (!IDENTITY_KEYS.has(key) && !isNothing(chunk.raw(key))) return true;
  const choices = chunk.array('choices');
  for (let i = 0; i < (choices?.length ?? 0); i++) {
    const choice = choices?.object(i);
    if (choice === undefined) return true;
    if (!isEmptyValue(choice.raw('finish_reason'))) return true;
    for (const key of choice.keys()) if (!CHOICE_KEYS.has(key) && !isNothing(choice.raw(key))) return true;
    const delta = choice.object('delta');
    if (delta === undefined && !isNothing(choice.raw('delta'))) return true;
    for (const key of delta?.keys() ?? []) if (key !== 'role' && !isEmptyValue(delta?.raw(key))) return true;
  }
  return false;
}
