import { deflateRawSync, deflateSync, gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { canDecode, createDecoder } from './content-coding.js';

describe('content codings', () => {
  it('reads one of the known ones, no list and no other', () => {
    for (const coding of ['gzip', 'x-gzip', 'deflate', 'br', 'zstd']) expect(canDecode(coding)).toBe(true);
    for (const coding of ['', 'identity', 'compress', 'gzip, br', 'GZIP', 'constructor'])
      expect(canDecode(coding)).toBe(false);
  });

  it('reads deflate with and without a zlib header, at every level', async () => {
    for (let level = 0; level <= 9; level++) {
      for (const bytes of [deflateSync('some text', { level }), deflateRawSync('some text', { level })]) {
        const decoder = createDecoder('deflate', bytes);
        decoder.end(bytes);
        expect(Buffer.concat(await decoder.toArray()).toString()).toBe('some text');
      }
    }
  });

  it('reads several gzip members in a row', async () => {
    const bytes = Buffer.concat([gzipSync('a'), gzipSync('b')]);
    const decoder = createDecoder('gzip', bytes);
    decoder.end(bytes);
    expect(Buffer.concat(await decoder.toArray()).toString()).toBe('ab');
  });
});
