import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ByteSource } from '../json/byte-source.js';
import { ChunkList } from './chunk-list.js';

describe('ChunkList', () => {
  it('keeps the very chunk of a body that comes in one, and large ones as they are', () => {
    const list = new ChunkList();
    const one = Buffer.alloc(3, 'o');
    list.push(one);
    expect(list.concat()).toBe(one);
    const large = Buffer.alloc(1024, 'x');
    list.push(large);
    list.push(large);
    expect(list.chunks[1]).toBe(large);
    expect(list.chunks[2]).toBe(large);
  });

  it.each([1, 3, 16, 700, 1023, 1024, 2000])(
    'holds few buffers, and little more memory than bytes, of chunks of %d bytes',
    (size) => {
      const list = new ChunkList();
      const count = 3000;
      // Each is a small part of a read of its own.
      for (let i = 0; i < count; i++) list.push(Buffer.from(new ArrayBuffer(16_384), 0, size));
      const bytes = count * size;
      if (size < 1024) expect(list.chunks.length).toBeLessThanOrEqual(Math.ceil(bytes / 8000));
      const kept = new Set(list.chunks.map(({ buffer }) => buffer));
      const memory = [...kept].reduce((total, { byteLength }) => total + byteLength, 0);
      expect(memory).toBeLessThan(1.5 * bytes + 65_536);
    },
  );

  const sizes = fc.array(fc.oneof(fc.nat(8), fc.nat(600), fc.nat(20_000)), { maxLength: 60 });

  it('gives back the same bytes, whatever the chunks, and never changes what it gave out', () => {
    fc.assert(
      fc.property(sizes, (lengths) => {
        const list = new ChunkList();
        const source = new ByteSource();
        let next = 0;
        const all: Buffer[] = [];
        const seen: [Buffer, Buffer][] = [];
        for (const length of lengths) {
          const chunk = Buffer.from(Array.from({ length }, () => next++ & 0xff));
          all.push(chunk);
          list.push(chunk);
          source.append(chunk);
          const last = list.chunks.at(-1) as Buffer;
          seen.push([last, Buffer.from(last)]);
        }
        const expected = Buffer.concat(all);
        expect([list.length, source.length]).toEqual([expected.length, expected.length]);
        expect(list.concat().equals(expected)).toBe(true);
        expect(source.slice(0, source.length).equals(expected)).toBe(true);
        for (const [given, copy] of seen) expect(given.equals(copy)).toBe(true);
        for (const at of [0, Math.floor(expected.length / 2), expected.length - 1])
          if (expected.length > 0) expect(source.byteAt(at)).toBe(expected[at]);
        const taken = list.take();
        expect(Buffer.concat(taken).equals(expected)).toBe(true);
        expect([list.length, list.chunks.length]).toEqual([0, 0]);
      }),
    );
  });
});
