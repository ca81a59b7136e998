import { describe, expect, it } from 'vitest';
import { nearest } from './nearest.js';

const known = ['id', 'url', 'key', 'max_concurrency', 'probe_interval', 'headers'];

describe('nearest', () => {
  it.each([
    ['max_concurency', 'max_concurrency', true],
    ['maxConcurrency', 'max_concurrency', true],
    ['max-concurrency', 'max_concurrency', true],
    ['kye', 'key', true],
    ['header', 'headers', true],
    ['uri', 'url', true],
    ['probe', 'probe_interval', false],
    ['url_of_the_server', 'url', false],
    ['temperature', 'headers', false],
  ])('%s → %s (close: %s)', (word, expected, close) => {
    expect(nearest(word, known)).toEqual({ word: expected, close });
  });
  it('knows nothing among nothing, and is quick with long words', () => {
    expect(nearest('x', [])).toBeNull();
    expect(nearest('x'.repeat(1_000_000), known)?.close).toBe(false);
  });
});
