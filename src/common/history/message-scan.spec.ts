import { afterEach, describe, expect, it, vi } from 'vitest';
import { MessageScan } from './message-scan.js';

describe('MessageScan', () => {
  afterEach(() => vi.restoreAllMocks());

  it('looks at each byte of a long text a few times only', () => {
    const length = 1024 * 1024;
    const bytes = Buffer.from(`[{"content":"${'x'.repeat(length)}"},7]`);
    let searched = 0;
    const indexOf = Buffer.prototype.indexOf;
    vi.spyOn(Buffer.prototype, 'indexOf').mockImplementation(function (this: Buffer, ...args) {
      const found = (indexOf as (...all: unknown[]) => number).apply(this, args);
      const from = typeof args[1] === 'number' ? args[1] : 0;
      searched += (found < 0 ? this.length : found) - from;
      return found;
    });
    const scan = new MessageScan(bytes);
    expect(scan.item(1)?.toString()).toBe('7');
    expect(searched).toBeGreaterThan(length / 2);
    expect(searched).toBeLessThan(3 * length);
    expect(scan.item(0)?.length).toBe(bytes.length - 4);
    expect(scan.item(2)).toBeUndefined();
  });
});
