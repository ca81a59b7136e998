import { describe, expect, it } from 'vitest';
import { OutputWatch, SECRET_MARKER, secretKey, takeLeaks } from './support/secret-watch.js';

/** Every file of tests ends with a look at what this watch saw; here it is seen to see. */
describe('the watch over secrets', () => {
  it('sees a key, also one cut in two, and nothing else', () => {
    const watch = new OutputWatch('a test');
    watch.see('harmless');
    watch.see(Buffer.from(`x ${SECRET_MARKER.slice(0, 4)}`));
    expect(takeLeaks()).toEqual([]);
    watch.see(`${SECRET_MARKER.slice(4)} y`);
    expect(takeLeaks()).toHaveLength(1);
    watch.see('harmless again');
    expect(takeLeaks()).toEqual([]);
    watch.see(`Bearer ${secretKey('a')}`);
    expect(takeLeaks()[0]).toContain('a test: ');
  });
});
