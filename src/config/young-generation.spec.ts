import { spawnSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { growthFactor } from './young-generation.js';

const MODULE = new URL('./young-generation.ts', import.meta.url).href;
const MIB = 1024 * 1024;

/** How large the young generation (MiB, both halves) becomes while much survives, and after it was told to shrink. */
function sizes(options: readonly string[]): { busy: number; calm: number; again: number } {
  const script = `
    import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8';
    import { setTimeout as sleep } from 'node:timers/promises';
    import { runInNewContext } from 'node:vm';
    const { YoungGeneration } = await import('${MODULE}');
    new YoungGeneration(process.execArgv).limit();
    const size = () => getHeapSpaceStatistics().find((space) => space.space_name === 'new_space').space_size / ${MIB};
    const work = async () => {
      let kept = [];
      let largest = 0;
      for (let i = 0; i < 3_000_000; i += 1) {
        kept.push({ i, of: [i] });
        if (kept.length > 150_000) kept = [];
        if (i % 20_000 === 0) {
          await sleep(1);
          largest = Math.max(largest, size());
        }
      }
      return largest;
    };
    const busy = await work();
    setFlagsFromString('--expose-gc');
    runInNewContext('gc')({ type: 'major', execution: 'sync', flavor: 'last-resort' });
    const calm = size();
    await sleep(20);
    console.log(JSON.stringify({ busy, calm, again: await work() }));`;
  const { stdout, stderr } = spawnSync(
    process.execPath,
    [...options, '--input-type=module', '--eval', script],
    { encoding: 'utf8' },
  );
  expect(stderr).toBe('');
  return JSON.parse(stdout) as { busy: number; calm: number; again: number };
}

describe('the young generation of the heap', () => {
  it.each([
    [1, 2],
    [8, 2],
    [16, 2],
    [17, 1],
    [32, 1],
    [128, 1],
  ])('of %d MiB may grow by %d', (size, factor) => {
    expect(growthFactor(size * MIB)).toBe(factor);
  });

  it('grows to its limit and no further, also after it shrank', () => {
    const { busy, calm, again } = sizes([]);
    expect(busy).toBe(32);
    expect(calm).toBeLessThan(32);
    expect(again).toBe(32);
  });

  it('is left alone where a size was chosen', () => {
    expect(sizes(['--max-semi-space-size=32']).busy).toBe(64);
    expect(sizes(['--max_semi_space_size=4']).busy).toBe(8);
  });
});
