import { spawnSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { canCountBuffers } from './buffer-accounting.js';

const MODULE = new URL('./buffer-accounting.ts', import.meta.url).href;

/** How often the whole heap was marked while a gigabyte of buffers was made in pieces, few of them alive at a time. */
function majorCollections(prepare: string): number {
  const script = `
    import { constants, PerformanceObserver } from 'node:perf_hooks';
    ${prepare}
    let majors = 0;
    const count = (list) => {
      for (const { detail } of list.getEntries()) if (detail.kind === constants.NODE_PERFORMANCE_GC_MAJOR) majors += 1;
    };
    const observer = new PerformanceObserver(count);
    observer.observe({ entryTypes: ['gc'] });
    const alive = [];
    for (let i = 0; i < 16_000; i += 1) {
      alive[i % 150] = Buffer.alloc(64 * 1024);
      if (i % 150 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    console.log(majors);`;
  const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '--eval', script], {
    encoding: 'utf8',
  });
  expect(stderr).toBe('');
  return Number(stdout);
}

describe('buffers counted with the heap', () => {
  it.each([
    ['11.3.244.8-node.33', false],
    ['12.4.254.21-node.33', false],
    ['13.5.212.10-node.1', false],
    ['13.6.233.17-node.28', true],
    ['14.1.146.11-node.14', true],
  ])('V8 %s: %s', (version, can) => {
    expect(canCountBuffers(version)).toBe(can);
  });

  it.runIf(canCountBuffers(process.versions.v8))('make the whole heap be marked less often', () => {
    const usually = majorCollections('');
    const here = majorCollections(`(await import('${MODULE}')).countBuffersWithTheHeap();`);
    expect(usually).toBeGreaterThan(3);
    expect(here).toBeLessThan(usually / 2);
  });
});
