import { spawnSync } from 'node:child_process';
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

it('leaves young collections to the main thread', () => {
  const ms = helpersMs(`(await import('${MODULE}')).scavengeAlone();`);
  expect(ms.length).toBeGreaterThan(3);
  // Those before the flag was set may have been shared out.
  expect(ms.slice(-3)).toEqual([0, 0, 0]);
});
