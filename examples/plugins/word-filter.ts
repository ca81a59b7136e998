import { Injectable } from '@nestjs/common';
import { IsNotEmpty, IsString } from 'class-validator';
import {
  type ExchangeInterceptor,
  type JsonDocument,
  Order,
  RegisterInterceptor,
  SseEvent,
  type StreamTransform,
} from 'llm-proxy/contracts';

class WordFilterConfig {
  /** Replaced wherever it stands in an answer; upper and lower case matter. */
  @IsString()
  @IsNotEmpty()
  word: string;

  /** What stands there instead. */
  @IsString()
  replacement: string;
}

/** Replaces one word in the text of every answer, streamed or whole. */
@Injectable()
@RegisterInterceptor({ id: 'word-filter', order: Order.shape, config: WordFilterConfig })
export class WordFilterPlugin implements ExchangeInterceptor {
  #config: WordFilterConfig = { word: '', replacement: '' };

  configure(config: WordFilterConfig): void {
    this.#config = config;
  }

  onResponse(): StreamTransform | null {
    return this.#config.word === '' ? null : new WordFilterTransform(this.#config);
  }
}

interface HeldText {
  readonly text: string;
  /** Where it came from, as a pattern for an event of its own. */
  readonly chunk: JsonDocument;
}

/**
 * Lives as long as one answer. A word may be cut anywhere between two events, so an end of a text that may begin the
 * word waits for the next event of its choice, and no longer.
 */
class WordFilterTransform implements StreamTransform {
  readonly needles = null;
  readonly #held = new Map<number, HeldText>();

  constructor(private readonly config: WordFilterConfig) {}

  push(event: SseEvent, emit: (event: SseEvent) => void): void {
    // `json` is shared and read-only; what we change is our own copy.
    const chunk = event.json?.fork();
    const choices = chunk?.array('choices');
    if (chunk === undefined || choices === undefined || choices.length === 0) {
      // The usage chunk or [DONE]: all text comes before it. A comment ends nothing.
      if (event.data !== undefined) this.flush(emit);
      emit(event);
      return;
    }
    let changed = false;
    for (let i = 0; i < choices.length; i++) {
      const choice = choices.object(i);
      if (choice !== undefined && this.#pushChoice(choice, chunk)) changed = true;
    }
    emit(changed ? event.withData(chunk.parts()) : event);
  }

  flush(emit: (event: SseEvent) => void): void {
    for (const [index, { text, chunk }] of this.#held) {
      const own = chunk.fork();
      own.set('choices', [{ index, delta: { content: text }, finish_reason: null }]);
      emit(SseEvent.ofBytes(own.parts()));
    }
    this.#held.clear();
  }

  whole(answer: JsonDocument): void {
    const choices = answer.array('choices');
    for (let i = 0; i < (choices?.length ?? 0); i++) {
      const message = choices?.object(i)?.object('message');
      const content = message?.string('content');
      if (content?.includes(this.config.word))
        message?.set('content', this.#replaced(content.split(this.config.word)));
    }
  }

  /** True where the choice was changed. */
  #pushChoice(choice: JsonDocument, chunk: JsonDocument): boolean {
    const delta = choice.object('delta');
    if (delta === undefined) return false;
    const index = Number(choice.get('index') ?? 0);
    const content = delta.string('content') ?? '';
    const text = (this.#held.get(index)?.text ?? '') + content;
    this.#held.delete(index);
    const pieces = text.split(this.config.word);
    const last = pieces.at(-1) ?? '';
    const ending = (choice.get('finish_reason') ?? null) !== null || delta.has('tool_calls');
    const heldLength = ending ? 0 : beginning(last, this.config.word);
    if (heldLength > 0) {
      pieces[pieces.length - 1] = last.slice(0, -heldLength);
      this.#held.set(index, { text: last.slice(-heldLength), chunk: chunk.fork() });
    }
    const result = this.#replaced(pieces);
    if (result === content) return false;
    delta.set('content', result);
    return true;
  }

  #replaced(pieces: readonly string[]): string {
    return pieces.join(this.config.replacement);
  }
}

/** Length of the longest end of `text` that is a beginning of `word`. */
function beginning(text: string, word: string): number {
  for (let length = Math.min(text.length, word.length - 1); length > 0; length--) {
    if (word.startsWith(text.slice(-length))) return length;
  }
  return 0;
}
