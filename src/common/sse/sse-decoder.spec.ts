import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { endsEvent, SseDecoder, SseEventTooLargeError } from './sse-decoder.js';
import type { SseEvent } from './sse-event.js';
import { SseFraming } from './sse-framing.js';

function decode(chunks: readonly Buffer[]): SseEvent[] {
  const decoder = new SseDecoder();
  const events: SseEvent[] = [];
  for (const chunk of chunks) decoder.push(chunk, (event) => events.push(event));
  decoder.end((event) => events.push(event));
  expect(decoder.pending).toBe(0);
  return events;
}

const dataOf = (events: readonly SseEvent[]): string[] =>
  events.map((event) => event.data).filter((data) => data !== undefined);
const bytesOf = (events: readonly SseEvent[]): string =>
  Buffer.concat(events.map((e) => e.raw)).toString('hex');

const STREAM = Buffer.from(
  '\ufeffdata: a\r\n\r\n: note\n\ndata:b\r\rdata:  c\ndata\rdata:d\r\n\n\n\r\nevent: e\nid: 7\ndatax: no\ndata: é😀\n\ndata: z',
);
const DATA = ['a', 'b', ' c\n\nd', 'é😀', 'z'];

const pieces = fc.array(fc.constantFrom('\n', '\r', '\r\n', 'data: x', ':', 'data', 'é', '\n\n'), {
  maxLength: 12,
});
const stream = pieces.map((list) => Buffer.from(list.join('')));

function cut(bytes: Buffer, cuts: readonly number[]): Buffer[] {
  const places = [...cuts.map((c) => c % (bytes.length + 1)), 0, bytes.length].sort((a, b) => a - b);
  return places.slice(1).map((end, i) => bytes.subarray(places[i], end));
}

describe('SseDecoder', () => {
  it('finds the same data and loses no byte at every cut', () => {
    for (let i = 0; i <= STREAM.length; i++) {
      for (let j = i; j <= STREAM.length; j += 5) {
        const events = decode([STREAM.subarray(0, i), STREAM.subarray(i, j), STREAM.subarray(j)]);
        expect([dataOf(events), bytesOf(events)]).toEqual([DATA, STREAM.toString('hex')]);
      }
    }
  });

  it('takes single bytes', () => {
    const events = decode(Array.from(STREAM, (byte) => Buffer.of(byte)));
    expect([dataOf(events), bytesOf(events)]).toEqual([DATA, STREAM.toString('hex')]);
  });

  it('loses nothing and cuts nothing differently, whatever line ends and chunks come', () => {
    fc.assert(
      fc.property(stream, fc.array(fc.nat(), { maxLength: 6 }), (bytes, cuts) => {
        const events = decode(cut(bytes, cuts));
        expect(bytesOf(events)).toBe(bytes.toString('hex'));
        expect(dataOf(events)).toEqual(dataOf(decode([bytes])));
      }),
      { numRuns: 1000 },
    );
  });

  it('gives an event that ends in CR at once', () => {
    const decoder = new SseDecoder();
    const seen: unknown[] = [];
    decoder.push(Buffer.from('data: x\r\r'), (event) => seen.push(event.data));
    expect([seen, decoder.pending]).toEqual([['x'], 0]);
  });

  it('refuses an event beyond the limit, and only such a one', () => {
    const decoder = new SseDecoder(10);
    for (let i = 0; i < 5; i++) decoder.push(Buffer.from('data: x\n\n'), () => {});
    decoder.push(Buffer.from('data: 1234'), () => {});
    expect(() => decoder.push(Buffer.from('5'), () => {})).toThrow(SseEventTooLargeError);
  });

  it('leaves an oversize event out where that is asked for', () => {
    const decoder = new SseDecoder(10, 'skip');
    const seen: unknown[] = [];
    for (const part of ['data: 123', '456', '789\n', '\ndata: a\n', '\n']) {
      decoder.push(Buffer.from(part), (event) => seen.push(event.data));
    }
    expect([seen, decoder.idle]).toEqual([['a'], true]);
  });
});

describe('SseFraming', () => {
  it('knows from the last bytes of a chunk what reading all of it would tell', () => {
    fc.assert(
      fc.property(stream, fc.array(fc.nat(), { maxLength: 6 }), (bytes, cuts) => {
        const [quick, slow] = [new SseFraming(), new SseFraming()];
        for (const chunk of cut(bytes, cuts)) {
          quick.skip(chunk);
          for (const byte of chunk) slow.next(Buffer.of(byte), 0);
          expect(quick.open).toBe(slow.open);
          if (endsEvent(chunk)) expect(slow.open).toBe(false);
        }
        const next = [quick, slow].map((framing) => framing.next(Buffer.from('\nx\n\n'), 0));
        expect(next[0]).toBe(next[1]);
      }),
      { numRuns: 1000 },
    );
  });
});
