import { spawnSync } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { expect, it } from 'vitest';

const MODULE = new URL('./scavenges.ts', import.meta.url).href;

/** How long helper threads worked at each young collection, as V8's trace tells it, in ms. */
function helpersMs(prepare: string): number[] {
  const script = `
    ${prepare}
    const alive = [];
    for (let i = 0; i < 300_000; i += 1) alive[i % 20_000] = { i, more: [i] };`;
  const flags = ['--trace-gc-nvp', '--max-semi-space-size=2', '--input-type=module', '--eval', script];
  const { stdout } = spawnSync(process.execPath, flags, { encoding: 'utf8' });
  return [...stdout.matchAll(/background\.scavenge\.parallel=([\d.]+)/g)].map(([, ms]) => Number(ms));
}

it.runIf(availableParallelism() > 1)('leaves young collections to the main thread', () => {
  const usually = helpersMs('');
  const here = helpersMs(`(await import('${MODULE}')).scavengeAlone();`);
  expect(usually.some((ms) => ms > 0)).toBe(true);
  expect(here.length).toBeGreaterThan(0);
  // Those before the flag was set may have been shared out.
  expect(here.slice(-3).every((ms) => ms === 0)).toBe(true);
});
