import type { JsonArray, JsonDocument } from '../common/json/json-document.js';
import { isDone } from '../common/sse/done-event.js';
import { EVENT_LIMIT_BYTES } from '../common/sse/sse-decoder.js';
import type { SseEvent } from '../common/sse/sse-event.js';
import { checkRoom, StreamLimitError } from '../common/sse/stream-limit.js';
import type { StreamTransform } from '../contracts/stream.js';
import { isEmptyValue, isJsonString, isNothing } from '../common/json/raw-value.js';
import { ChoiceSplitter } from './choice-splitter.js';
import { carriesMore, ChunkRewriter, eventOfFrame, frameOf, memberOf, ownEvent } from './chunk-rewriter.js';
import { mayHoldTag } from './json-text.js';
import { ThoughtTemplate } from './thought-template.js';
import { splitAnswer } from './whole-answer.js';

/** `<` as it stands in JSON: plain, or escaped as Go's encoder does. */
const TAG_NEEDLES = ['<', '\\u003'] as const;
/** Until the first role came: it must be told from a repeated one, which need not be kept. */
const FIRST_NEEDLES = [...TAG_NEEDLES, '"role"'] as const;
/** Parts of a delta that end the text before them. */
const ENDING_KEYS = ['tool_calls', 'function_call'] as const;

/**
 * Takes `<think>…</think>` out of one answer. Owns the state of each choice, lives as long as the answer, never delays
 * text that cannot be the start of a tag and never lets text change its place. Outside of thoughts it is called for
 * events that hold a `<` only.
 */
export class ThinkTagTransform implements StreamTransform {
  readonly #strip: boolean;
  readonly #choices = new Map<number, ChoiceSplitter>();
  /** Choices for which every event matters. Counted, so that many choices cost nothing per event. */
  #busy = 0;
  /** What all choices keep beside a handful of characters: their indexes and frames, as if no two shared one. */
  #keptBytes = 0;
  /** The last one that was kept; most are alike. */
  #frame = '';
  #roleSeen = false;
  #template: { readonly choice: ChoiceSplitter; readonly thought: ThoughtTemplate } | null = null;

  constructor(mode: 'split' | 'strip') {
    this.#strip = mode === 'strip';
  }

  get needles(): readonly string[] | null {
    if (this.#busy > 0) return null;
    return this.#roleSeen ? TAG_NEEDLES : FIRST_NEEDLES;
  }

  push(event: SseEvent, emit: (event: SseEvent) => void): void {
    if (this.#template?.choice.inThought === true && emitThought(this.#template.thought, event, emit)) return;
    const chunk = event.json;
    const choices = chunk?.array('choices');
    if (choices !== undefined && choices.length > 0) {
      this.#pushChoices(event, choices, emit);
      return;
    }
    if (chunk === undefined ? isDone(event) : endsAnswer(chunk)) this.flush(emit);
    emit(event);
  }

  flush(emit: (event: SseEvent) => void): void {
    for (const [, choice] of [...this.#choices].sort(([one], [other]) => one - other)) {
      if (choice.frame === null) continue;
      const like = eventOfFrame(choice.frame);
      const pieces = this.#counting(choice, () => choice.flush());
      this.#keepFrame(choice, null);
      for (const piece of pieces) emit(ownEvent(like, choice.index, [memberOf(piece)]));
    }
  }

  whole(answer: JsonDocument): void {
    splitAnswer(answer, this.#strip);
  }

  #pushChoices(event: SseEvent, choices: JsonArray, emit: (event: SseEvent) => void): void {
    if (this.#makeTemplate(event, choices) && emitThought(this.#template!.thought, event, emit)) return;
    const rewriter = new ChunkRewriter(event);
    let keepsRole = false;
    for (let at = 0; at < choices.length; at++) {
      const choice = choices.object(at);
      if (choice === undefined) continue;
      const state = this.#choice(choice);
      if (this.#counting(state, () => this.#pushChoice(event, choice, state, at, rewriter))) keepsRole = true;
    }
    rewriter.emit(keepsRole, emit);
  }

  /** True when this delta holds its choice's first role and still holds it afterwards. */
  #pushChoice(
    event: SseEvent,
    choice: JsonDocument,
    state: ChoiceSplitter,
    at: number,
    rewriter: ChunkRewriter,
  ): boolean {
    const delta = choice.object('delta');
    const firstRole = !state.roleSeen && isJsonString(delta?.raw('role'));
    if (firstRole) state.roleSeen = this.#roleSeen = true;
    const ending = isEnding(choice, delta);
    const content = delta?.raw('content');
    let roleStays = firstRole;
    if (delta !== undefined && isJsonString(content)) {
      const split = state.split(content, () => delta.string('content'), ending);
      if (!split.same) {
        rewriter.replaceContent(at, state.index, split.pieces, firstRole);
        roleStays = firstRole && split.pieces.length <= 1;
      }
    }
    // Content that could not be read, or none: what is held goes before.
    if (ending && state.holds) rewriter.insert(state.index, state.flush());
    this.#keepFrame(state, state.holds ? event : null);
    return roleStays;
  }

  /** True when this event is nothing but a piece of a thought, so that the next ones can be measured by it. */
  #makeTemplate(event: SseEvent, choices: JsonArray): boolean {
    const choice = choices.length === 1 ? choices.object(0) : undefined;
    const delta = choice?.object('delta');
    const content = delta?.raw('content');
    if (choice === undefined || delta === undefined || !isJsonString(content) || mayHoldTag(content))
      return false;
    const state = this.#choice(choice);
    const firstRole = !state.roleSeen && delta.has('role');
    if (!state.inThought || firstRole || delta.has('reasoning_content') || isEnding(choice, delta))
      return false;
    if (this.#strip && carriesMore(event)) return false;
    const thought = ThoughtTemplate.of(event.raw, content, this.#strip);
    if (thought !== undefined) this.#template = { choice: state, thought };
    return thought !== undefined;
  }

  #choice(choice: JsonDocument): ChoiceSplitter {
    const index = choice.raw('index');
    const number = index === undefined ? 0 : Number(index.toString('latin1'));
    const key = Number.isInteger(number) ? number : 0;
    let state = this.#choices.get(key);
    if (state === undefined) {
      checkRoom(this.#choices, 'choices');
      this.#keep(index?.length ?? 0);
      state = new ChoiceSplitter(index, this.#strip);
      this.#choices.set(key, state);
    }
    return state;
  }

  /** Of the last event of a choice, while text of it is held back. */
  #keepFrame(choice: ChoiceSplitter, event: SseEvent | null): void {
    if (choice.frame === null && event === null) return;
    this.#keptBytes -= choice.frame?.length ?? 0;
    choice.frame = null;
    if (event === null) return;
    const frame = frameOf(event);
    if (frame !== this.#frame) this.#frame = frame;
    this.#keep(frame.length);
    choice.frame = this.#frame;
  }

  #keep(bytes: number): void {
    if (this.#keptBytes + bytes > EVENT_LIMIT_BYTES)
      throw new StreamLimitError('the choices of the stream are too large');
    this.#keptBytes += bytes;
  }

  #counting<T>(choice: ChoiceSplitter, work: () => T): T {
    const before = choice.busy;
    const result = work();
    this.#busy += Number(choice.busy) - Number(before);
    return result;
  }
}

function isEnding(choice: JsonDocument, delta: JsonDocument | undefined): boolean {
  // Some providers say `"finish_reason":""` on every chunk: that ends nothing.
  return (
    !isEmptyValue(choice.raw('finish_reason')) || ENDING_KEYS.some((key) => !isEmptyValue(delta?.raw(key)))
  );
}

/** False when the event is not like the template. */
function emitThought(thought: ThoughtTemplate, event: SseEvent, emit: (event: SseEvent) => void): boolean {
  const result = thought.apply(event.raw);
  if (result === undefined) return false;
  if (result !== null) emit(result);
  return true;
}

/** A chunk without choices that comes behind all text: usage, or an error in the stream. */
function endsAnswer(chunk: JsonDocument): boolean {
  return !isNothing(chunk.raw('usage')) || !isNothing(chunk.raw('error'));
}
