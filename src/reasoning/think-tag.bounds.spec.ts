import { describe, expect, it } from 'vitest';
import { SseDecoder } from '../common/sse/sse-decoder.js';
import { SseEvent } from '../common/sse/sse-event.js';
import { CHOICE_LIMIT, StreamLimitError } from '../common/sse/stream-limit.js';
import { ThinkTagTransform } from './think-tag.transform.js';

interface Chunk {
  readonly choices: readonly { readonly index: number; readonly delta: { readonly content?: string } }[];
}

const DONE = 'data: [DONE]\n\n';
const content = (text: string, index = 0, id = 'c1'): string =>
  `data: ${JSON.stringify({ id, choices: [{ index, delta: { content: text }, finish_reason: null }] })}\n\n`;
const event = (text: string, index = 0, id = 'c1'): SseEvent =>
  new SseEvent(Buffer.from(content(text, index, id)));
const chunksOf = (text: string): Chunk[] =>
  text
    .split('\n\n')
    .filter((piece) => piece.startsWith('data: {'))
    .map((piece) => JSON.parse(piece.slice(6)) as Chunk);

/** As a pipeline does it: only events that hold a needle of this moment are shown to the transform. */
function feed(transform: ThinkTagTransform, one: SseEvent, emit: (event: SseEvent) => void): void {
  const { needles } = transform;
  if (needles === null || needles.some((needle) => one.raw.includes(needle))) transform.push(one, emit);
  else emit(one);
}

function send(text: string): string {
  const transform = new ThinkTagTransform('split');
  const decoder = new SseDecoder();
  let sent = '';
  const emit = (one: SseEvent): void => void (sent += one.raw.toString());
  decoder.push(Buffer.from(text), (one) => feed(transform, one, emit));
  decoder.end((one) => feed(transform, one, emit));
  transform.flush(emit);
  return sent;
}

/** One text held back for each choice, until the transform will take no more. */
function holdMany(choices: number, id = 'c1'): { transform: ThinkTagTransform; taken: number } {
  const transform = new ThinkTagTransform('split');
  for (let i = 0; i < choices; i++) {
    try {
      feed(transform, event('<th', i, id), () => {});
    } catch (error) {
      expect(error).toBeInstanceOf(StreamLimitError);
      return { transform, taken: i };
    }
  }
  return { transform, taken: choices };
}

function flushed(transform: ThinkTagTransform): string {
  let text = '';
  transform.flush((event) => (text += event.raw.toString()));
  return text;
}

describe('ThinkTagTransform, its bounds', () => {
  it('keeps the state of so many choices and no more, and loses nothing of them', () => {
    const { transform, taken } = holdMany(3 * CHOICE_LIMIT);
    expect(taken).toBe(CHOICE_LIMIT);
    const chunks = chunksOf(flushed(transform));
    expect(chunks.map(({ choices }) => choices[0]?.index)).toEqual(
      Array.from({ length: CHOICE_LIMIT }, (_, i) => i),
    );
    expect(chunks.every(({ choices }) => choices[0]?.delta.content === '<th')).toBe(true);
    expect(flushed(transform)).toBe('');
  });

  it('takes choices without tags beyond that: nothing is kept of them', () => {
    const stream = Array.from({ length: 3 * CHOICE_LIMIT }, (_, i) => content('a', i)).join('') + DONE;
    expect(send(stream)).toBe(stream);
  });

  it('keeps no more than one large event may have of what stands around the held texts', () => {
    const { transform, taken } = holdMany(CHOICE_LIMIT, 'x'.repeat(1024 * 1024));
    expect(taken).toBe(15);
    expect(flushed(transform).length).toBeLessThan(17 * 1024 * 1024);
  });

  it('frees what it kept when the text goes on', () => {
    const transform = new ThinkTagTransform('split');
    const id = 'x'.repeat(1024 * 1024);
    let sent = 0;
    for (let i = 0; i < 40; i++)
      for (const text of ['<th', 'at']) feed(transform, event(text, 0, id), () => sent++);
    expect(sent).toBe(40);
  });

  it('takes no event apart into a multiple of itself', () => {
    const id = 'x'.repeat(1024 * 1024);
    const one = event('<think>a</think>b'.repeat(100), 0, id);
    expect(() => new ThinkTagTransform('split').push(one, () => {})).toThrow(StreamLimitError);
  });

  it('keeps the further lines of an event around what it held of it', () => {
    const frameBefore = `: note\nevent: message\nid: 7\n${content('x <thi').slice(0, -1)}retry: 5\n\n`;
    const sent = send(frameBefore);
    expect(sent).toContain(': note\nevent: message\nid: 7\ndata: {"id":"c1"');
    expect(sent.match(/retry: 5\n\n/g)).toHaveLength(2);
    expect(sent.match(/"content":"[^"]*"/g)).toEqual(['"content":"x "', '"content":"<thi"']);
  });
});
