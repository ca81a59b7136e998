import { executionAsyncResource } from 'node:async_hooks';

let kept: object | null = null;

/**
 * Keeps one entry of `process.nextTick` for good, and with it the shape (hidden class) of all of them. Without it a
 * collection in a moment in which none waits, such as one of the start with a large file, frees the shape; then the code
 * that makes the entries no longer knows it and goes the slowest way through V8 for the rest of the process: two calls of the
 * runtime each tick, and each request has several (docs/performance.md). Call it first of all.
 */
export function keepTickShape(): void {
  process.nextTick(() => {
    kept = executionAsyncResource();
  });
}

/** What is kept; null before the first tick. */
export function keptTick(): object | null {
  return kept;
}
