import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { ServiceProcess } from '../support/process.js';

const config = {
  server: { host: '127.0.0.1', port: 0 },
  providers: [{ id: 'p', url: 'http://127.0.0.1:9/v1' }],
  upstreams: [{ id: 'u', provider: 'p', model: 'real' }],
  models: Array.from({ length: 10_000 }, (_, i) => ({ name: `m-${i}`, upstreams: ['u'] })),
};

/** Of a service that has read a large file, in MiB, both halves. */
async function youngGeneration(nodeOptions: string): Promise<number> {
  const service = await ServiceProcess.listening({ config, environment: { NODE_OPTIONS: nodeOptions } });
  const { body } = await service.get('/metrics');
  const [, bytes] = /^nodejs_heap_space_size_total_bytes\{space="new"\} (\d+)$/m.exec(body.toString()) ?? [];
  return Number(bytes) / 1024 / 1024;
}

describe('the young generation of the heap', () => {
  it('stays within its limit, also at the start with a large file', async () => {
    expect(await youngGeneration('')).toBeLessThanOrEqual(32);
  });

  it('is left to NODE_OPTIONS', async () => {
    expect(await youngGeneration('--max-semi-space-size=2')).toBeLessThan(8);
  });
});

describe.runIf(process.platform === 'linux')('the process', () => {
  it('is the one that was started, with its command line', async () => {
    const service = await ServiceProcess.listening({ config });
    const line = readFileSync(`/proc/${service.child.pid}/cmdline`, 'utf8').split('\0');
    expect(line.slice(1)).toEqual([expect.stringMatching(/main\.js$/), '']);
  });
});
