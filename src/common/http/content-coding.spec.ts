import { once } from 'node:events';
import { deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
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

  it.each([
    ['gzip', gzipSync],
    ['zstd', zstdCompressSync],
  ] as const)('reads several %s members in a row, cut anywhere', async (coding, encode) => {
    // Frames of other bytes that are to be skipped are a part of zstd.
    const skipped = coding === 'zstd' ? Buffer.from('502a4d1803000000616263', 'hex') : Buffer.alloc(0);
    const long = 'text '.repeat(200_000);
    const texts = ['a', '', long, 'b'];
    const bytes = Buffer.concat(texts.flatMap((text) => [encode(text), skipped]));
    for (const size of [1, 7, bytes.length]) {
      const decoder = createDecoder(coding, bytes);
      const read = decoder.toArray();
      for (let at = 0; at < bytes.length; at += size) decoder.write(bytes.subarray(at, at + size));
      decoder.end();
      expect(Buffer.concat(await read).toString() === texts.join('')).toBe(true);
      expect(decoder.bytesWritten).toBe(bytes.length);
    }
  });

  it('holds back what nobody takes', async () => {
    const bytes = Buffer.concat([zstdCompressSync(Buffer.alloc(20_000_000)), zstdCompressSync('end')]);
    const decoder = createDecoder('zstd', bytes);
    decoder.end(bytes);
    await once(decoder, 'readable');
    expect(decoder.readableLength).toBeLessThan(1_000_000);
    expect(Buffer.concat(await decoder.toArray()).length).toBe(20_000_003);
  });

  it.each([
    ['a frame that is cut', Buffer.concat([zstdCompressSync('a'), zstdCompressSync('bcd').subarray(0, -2)])],
    ['what is no frame', Buffer.concat([zstdCompressSync('a'), Buffer.from('stray')])],
    ['more frames than anybody needs', Buffer.concat(Array<Buffer>(1100).fill(zstdCompressSync('')))],
  ])('refuses %s', async (_what, bytes) => {
    const decoder = createDecoder('zstd', bytes);
    decoder.end(bytes);
    await expect(decoder.toArray()).rejects.toThrow();
  });
});
