import type { Socket } from 'node:net';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { InterimFilter } from './interim-filter.js';

const LIMIT = 300;

/** What a parser reads behind the filter when the bytes come in these pieces. */
function filtered(pieces: readonly Buffer[]): { read: string; seen: boolean } {
  const waiting: Buffer[] = [];
  const source = { read: (_size?: number) => waiting.shift() ?? null };
  const filter = new InterimFilter(source as unknown as Socket, LIMIT);
  let read = '';
  for (const piece of pieces) {
    waiting.push(piece);
    expect(source.read(0)).toBe(piece);
    waiting.unshift(piece);
    for (let bytes = source.read(); bytes !== null; bytes = source.read()) read += bytes.toString('latin1');
  }
  return { read, seen: filter.seen };
}

function cut(text: string, at: readonly number[]): Buffer[] {
  const bytes = Buffer.from(text, 'latin1');
  const cuts = [0, ...at.map((n) => n % bytes.length).sort((a, b) => a - b), bytes.length];
  return cuts
    .slice(1)
    .map((end, i) => bytes.subarray(cuts[i], end))
    .filter(({ length }) => length > 0);
}

const ANSWER = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n';
const interim = fc.constantFrom(
  'HTTP/1.1 100 Continue\r\n\r\n',
  'HTTP/1.0 100\r\n\r\n',
  'HTTP/1.1 100 Continue\r\nx: y\r\n\r\n',
  'HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n',
  'HTTP/1.1 102 Processing\r\n\r\n',
);

describe('InterimFilter', () => {
  it('takes interim answers away, however the bytes are cut, and leaves the answer alone', () => {
    fc.assert(
      fc.property(fc.array(interim, { maxLength: 4 }), fc.array(fc.nat()), (before, at) => {
        const { read, seen } = filtered(cut(before.join('') + ANSWER, at));
        expect(read).toBe(ANSWER);
        if (before.length > 0) expect(seen).toBe(true);
      }),
    );
  });

  it.each([
    ['garbage', 'nonsense\r\n\r\n'],
    ['another protocol', 'HTTP/2.0 100 Continue\r\n\r\n'],
    ['a switch of protocols', 'HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n'],
    ['one that never ends', `HTTP/1.1 100 Continue\r\nx: ${'y'.repeat(LIMIT)}`],
    ['one with bare line feeds', 'HTTP/1.1 100 Continue\n\nHTTP/1.1 200 OK\r\n\r\n'],
    ['one that ends with a bare line feed', 'HTTP/1.1 100 Continue\r\nx: y\n\r\nHTTP/1.1 200 OK\r\n\r\n'],
    ['one with a broken version', 'HTTP/1.11100 Continue\r\n\r\n'],
  ])('leaves %s to the parser', (_what, text) => {
    for (const at of [[], [1], [5, 9], [10, 11, 12, 13]]) expect(filtered(cut(text, at)).read).toBe(text);
  });

  it('looks again after each request', () => {
    const waiting: Buffer[] = [];
    const source = { read: () => waiting.shift() ?? null };
    const filter = new InterimFilter(source as unknown as Socket, LIMIT);
    for (let i = 0; i < 3; i++) {
      filter.expectAnswer();
      expect(filter.seen).toBe(false);
      waiting.push(
        Buffer.from('HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n'),
        Buffer.from('HTTP/1.1 100 body'),
      );
      expect(String(source.read())).toBe('HTTP/1.1 200 OK\r\n');
      expect(String(source.read())).toBe('HTTP/1.1 100 body');
      expect(source.read()).toBeNull();
      expect(filter.seen).toBe(true);
    }
  });
});
