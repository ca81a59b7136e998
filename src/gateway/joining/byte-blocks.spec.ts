import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { ByteBlocks } from './byte-blocks.js';

function bytesOf(blocks: ByteBlocks): Buffer {
  const parts: Buffer[] = [];
  blocks.into(parts);
  return Buffer.concat(parts);
}

describe('ByteBlocks', () => {
  it('keeps every byte in order', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 300 })), (pieces) => {
        const blocks = new ByteBlocks();
        for (const piece of pieces) blocks.add(Buffer.from(piece));
        const whole = Buffer.concat(pieces);
        expect(blocks.length).toBe(whole.length);
        expect(bytesOf(blocks).equals(whole)).toBe(true);
      }),
    );
  });

  it('takes a part of a piece, and owns what it took', () => {
    const piece = Buffer.from('abcd');
    const blocks = new ByteBlocks();
    blocks.add(piece, 1, 3);
    piece.fill('x');
    expect(bytesOf(blocks).toString()).toBe('bc');
    expect(bytesOf(new ByteBlocks()).toString()).toBe('');
  });

  it('makes few blocks, not much larger than what is in them, of many small pieces', () => {
    const allocated = vi.spyOn(Buffer, 'allocUnsafe');
    try {
      const blocks = new ByteBlocks();
      const piece = Buffer.from('abcde');
      for (let i = 0; i < 1_000_000; i++) blocks.add(piece);
      const sizes = allocated.mock.calls.map(([size]) => size);
      expect(sizes.length).toBeLessThan(30);
      expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(2 * blocks.length);
    } finally {
      vi.restoreAllMocks();
    }
  });
});
