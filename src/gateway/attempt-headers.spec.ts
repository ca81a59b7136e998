import { describe, expect, it } from 'vitest';
import { AttemptHeaders } from './attempt-headers.js';

describe('AttemptHeaders', () => {
  it('keeps what HTTP can carry; a number becomes its text', () => {
    const headers = new AttemptHeaders()
      .set('x-a', 'a\té')
      .set('x-b', '')
      .set('x-c', 5 as never);
    expect([...headers]).toEqual([
      ['x-a', 'a\té'],
      ['x-b', ''],
      ['x-c', '5'],
    ]);
  });

  it.each<[unknown, unknown]>([
    ['x-a', 'a\r\nb'],
    ['x-a', 'a\0'],
    ['x-a', 'ё'],
    ['x-a', null],
    ['x-a', undefined],
    ['', 'a'],
    ['x a', 'a'],
    [5, 'a'],
    ['Host', 'a'],
    ['content-length', '1'],
  ])('refuses %j: %j without a word of its value', (name, value) => {
    const headers = new AttemptHeaders();
    expect(() => headers.set(name as string, value as string)).toThrow(
      expect.objectContaining({ name: 'PluginMistake' }),
    );
    expect(headers.size).toBe(0);
  });
});
