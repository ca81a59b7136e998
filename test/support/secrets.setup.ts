import { afterAll, expect } from 'vitest';
import { takeLeaks } from './secret-watch.js';

/** In every file: nothing that the service put out while its tests ran may hold a secret (spec 01 §2, §9). */
afterAll(() => {
  expect(takeLeaks()).toEqual([]);
});
