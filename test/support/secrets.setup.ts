import { afterAll, expect } from 'vitest';
import { takeLeaks } from './secret-watch.js';

/** In every file: nothing that the service put out while its tests ran may hold a secret. */
afterAll(() => {
  expect(takeLeaks()).toEqual([]);
});
