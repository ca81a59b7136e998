import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

/** Prints whether an entry that was made after a collection still has the shape of the one that was kept. */
const script = `
import { executionAsyncResource } from 'node:async_hooks';
import { keepTickShape, keptTick } from ${JSON.stringify(new URL('tick-shape.ts', import.meta.url).href)};
keepTickShape();
await new Promise(setImmediate);
gc();
process.nextTick(() => {
  const later = executionAsyncResource();
  console.log(later !== keptTick() && typeof later.callback === 'function' && %HaveSameMap(later, keptTick()));
});
`;

it('keeps what all later ticks look like, over a collection', async () => {
  const flags = ['--expose-gc', '--allow-natives-syntax', '--input-type=module', '--eval', script];
  const { stdout } = await promisify(execFile)(process.execPath, flags);
  expect(stdout.trim()).toBe('true');
});
