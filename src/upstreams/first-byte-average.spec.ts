import { expect, it } from 'vitest';
import { FirstByteAverage } from './first-byte-average.js';

it('starts with the first time and follows the newer ones by 0.3', () => {
  const average = new FirstByteAverage();
  expect(average.ms).toBeNull();
  average.add(100);
  expect(average.ms).toBe(100);
  average.add(200);
  expect(average.ms).toBeCloseTo(130);
});
