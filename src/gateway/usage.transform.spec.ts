import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { SseEvent } from '../common/sse/sse-event.js';
import { StreamPipeline } from './stream-pipeline.js';
import { UsageObserver } from './usage.observer.js';
import { UsageTransform } from './usage.transform.js';

const USAGE = '"usage":{"prompt_tokens":7,"completion_tokens":5}';
const WITHHELD = `data: {"id":"c","choices":[],${USAGE}}\n\n`;
const DONE = 'data: [DONE]\n\n';
const text = (content: string, extra = '') =>
  `data: {"choices":[{"delta":{"content":"${content}"}}]${extra}}\n\n`;

function relayed(stream: string, cuts: readonly number[] = []): { out: string; usage: UsageObserver } {
  const usage = new UsageObserver();
  const pipeline = new StreamPipeline([new UsageTransform(usage)], [usage]);
  const bytes = Buffer.from(stream);
  const places = [...new Set(cuts.map((cut) => cut % bytes.length))].sort((a, b) => a - b);
  const out: Buffer[] = [];
  const ends = [...places, bytes.length];
  ends.forEach((end, i) => {
    const sent = pipeline.push(bytes.subarray(i === 0 ? 0 : ends[i - 1], end));
    if (sent !== null) out.push(...[sent].flat());
  });
  out.push(...pipeline.end());
  return { out: Buffer.concat(out).toString(), usage };
}

describe('UsageTransform', () => {
  it('withholds the usage chunk alone, wherever the bytes are cut, and reads it', () => {
    const [before, after] = [`${text('a')}: comment\n\n${text('b', ',"usage":null')}`, DONE];
    fc.assert(
      fc.property(fc.array(fc.nat({ max: 400 }), { maxLength: 8 }), (cuts) => {
        const { out, usage } = relayed(before + WITHHELD + after, cuts);
        expect(out).toBe(before + after);
        expect(usage.tokens).toEqual({ input: 7, output: 5 });
      }),
    );
  });

  it.each([
    ['has choices', text('x', `,${USAGE}`)],
    ['has a finish reason beside it', `data: {"choices":[{"delta":{},"finish_reason":"stop"}],${USAGE}}\n\n`],
    ['has no list of choices', `data: {"type":"message_delta",${USAGE}}\n\n`],
    ['has choices that are no list', `data: {"choices":null,${USAGE}}\n\n`],
    ['brings an error', `data: {"error":{"message":"x"},"choices":[],${USAGE}}\n\n`],
    ['has no usage', 'data: {"choices":[],"usage":null}\n\n'],
    ['speaks of usage', text('\\"usage\\":{}')],
    ['is no JSON', 'data: "usage"\n\n'],
  ])('never withholds an event that %s', (_what, event) => {
    expect(relayed(event + DONE).out).toBe(event + DONE);
  });

  it('looks into no event without its needle', () => {
    const transform = new UsageTransform(new UsageObserver());
    expect(transform.needles).toEqual(['"usage"']);
    const stream = text('abc').repeat(50);
    const bytes = Buffer.from(stream);
    // Whole events without the needle leave as the very chunk that came.
    expect(new StreamPipeline([transform], []).push(bytes)).toBe(bytes);
  });

  it('leaves a stream whole that holds nothing but the usage chunk', () => {
    const emitted: SseEvent[] = [];
    const transform = new UsageTransform(new UsageObserver());
    transform.push(new SseEvent(Buffer.from(WITHHELD)), (event) => emitted.push(event));
    transform.flush();
    expect(emitted).toEqual([]);
  });
});
