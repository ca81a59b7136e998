import 'reflect-metadata';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { describe, expect, it, onTestFinished } from 'vitest';
import { ManualWallClock } from '../../test/support/manual-wall-clock.js';
import { waitFor } from '../../test/support/wait-for.js';
import { ConfigStore } from '../config/config.store.js';
import { loadConfig } from '../config/loader/load-config.js';
import { GatewayLog } from '../observability/log/gateway-log.js';
import { QuotaMetrics } from '../observability/metrics/quota.metrics.js';
import { StateFileError } from '../state/state-file.js';
import { QuotaKeeperService } from './quota-keeper.service.js';
import type { QuotaSet } from './quota-set.js';
import { QuotaRegistry } from './quota.registry.js';
import { QuotaStore } from './quota.store.js';

const DAY_MS = 86_400_000;

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'llm-proxy-quotas-'));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

/** The quotas of one upstream, as one process has them. */
async function processOf(
  directory: string,
  clock: ManualWallClock,
  quota: readonly object[] = [{ tokens: 100, per: 'P1D' }],
  file: string | null = 'state.json',
) {
  const text = JSON.stringify({
    providers: [{ id: 'p', url: 'http://h' }],
    upstreams: [{ id: 'u', provider: 'p', model: 'r', quota }],
    models: [{ name: 'm', upstreams: ['u'] }],
    ...(file === null ? {} : { state: { file } }),
  });
  const loaded = loadConfig({ text, directory }, {});
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
  const lines: string[] = [];
  const write = (line: string) => void lines.push((JSON.parse(line) as { msg: string }).msg);
  const log = new GatewayLog(pino({}, { write }));
  const config = new ConfigStore(loaded.config);
  const metricsRegistry = new Registry();
  const store = new QuotaStore(config, log, clock.now);
  const registry = new QuotaRegistry(config, store, clock.now);
  const keeper = new QuotaKeeperService(
    registry,
    store,
    new QuotaMetrics(metricsRegistry, 10),
    log,
    clock.now,
  );
  await keeper.onModuleInit();
  const [model] = loaded.config.models;
  const [entry] = model?.entries ?? [];
  if (model === undefined || entry === undefined) throw new Error('unreachable');
  const set = registry.gateOf(model, entry) as QuotaSet;
  const remaining = async () =>
    [...(await metricsRegistry.metrics()).matchAll(/^llm_proxy_quota_remaining\{(.*)\} (\S+)$/gm)].map(
      ([, labels, value]) => `${labels} ${value}`,
    );
  return { keeper, lines, registry, remaining, set };
}

const label = 'scope="upstream",id="u",unit="tokens",per="P1D"';

describe('quotas with a state file', () => {
  it('go on after a restart where they were', async () => {
    const [directory, clock] = [folder(), new ManualWallClock()];
    const first = await processOf(directory, clock);
    first.set.reserve(0)?.settle(30);
    await first.keeper.onApplicationShutdown();
    clock.ms += DAY_MS / 2;
    expect(await (await processOf(directory, clock)).remaining()).toEqual([`${label} 70`]);
    clock.ms += DAY_MS;
    expect(await (await processOf(directory, clock)).remaining()).toEqual([`${label} 100`]);
  });

  it('are saved while the process runs, where something changed, with what is reserved', async () => {
    const [directory, clock] = [folder(), new ManualWallClock()];
    const first = await processOf(directory, clock);
    const path = join(directory, 'state.json');
    const [before] = [readFileSync(path, 'utf8')];
    first.keeper.tick();
    expect(readFileSync(path, 'utf8')).toBe(before);
    first.set.reserve(0)?.settle(30);
    first.set.reserve(25);
    first.keeper.tick();
    first.keeper.tick();
    await waitFor(() => readFileSync(path, 'utf8') !== before, 'the file was written');
    // As after a kill: nobody said good-bye.
    expect(await (await processOf(directory, clock)).remaining()).toEqual([`${label} 45`]);
    await first.keeper.onApplicationShutdown();
  });

  it('stay counted when the limit changes, and wait for a quota that was taken out', async () => {
    const [directory, clock] = [folder(), new ManualWallClock()];
    const first = await processOf(directory, clock);
    first.set.reserve(0)?.settle(30);
    await first.keeper.onApplicationShutdown();
    const without = await processOf(directory, clock, [{ requests: 5, per: 'P1D' }]);
    without.set.reserve(0)?.settle(0);
    await without.keeper.onApplicationShutdown();
    const again = await processOf(directory, clock, [
      { tokens: 1000, per: 'PT24H' },
      { requests: 5, per: 'P1D' },
    ]);
    expect(await again.remaining()).toEqual([
      'scope="upstream",id="u",unit="tokens",per="PT24H" 970',
      'scope="upstream",id="u",unit="requests",per="P1D" 4',
    ]);
    clock.ms += 63 * DAY_MS;
    await again.keeper.onApplicationShutdown();
  });

  it.each([
    ['half a file', '{"version":1,"quotas":{"'],
    ['another version', '{"version":2,"quotas":{}}'],
    ['something else', '[1,2,3]'],
    ['numbers that are none', '{"version":1,"quotas":{"x":[["now",5]]}}'],
  ])('keep %s under another name, say so, and start at 0', async (_what, text) => {
    const directory = folder();
    writeFileSync(join(directory, 'state.json'), text);
    const { lines, remaining, keeper } = await processOf(directory, new ManualWallClock());
    expect(lines).toEqual([
      `state: ${join(directory, 'state.json')} is no state file of this version; it is kept as ${join(directory, 'state.json.corrupt')}, and all quotas start at 0`,
    ]);
    expect(readFileSync(join(directory, 'state.json.corrupt'), 'utf8')).toBe(text);
    expect(await remaining()).toEqual([`${label} 100`]);
    await keeper.onApplicationShutdown();
  });

  it('refuse to start where the file cannot be written', async () => {
    await expect(processOf(folder(), new ManualWallClock(), undefined, 'nowhere/state.json')).rejects.toThrow(
      StateFileError,
    );
  });

  it('say once that the file cannot be written any more, and once that it can again', async () => {
    const [directory, clock] = [join(folder(), 'inner'), new ManualWallClock()];
    mkdirSync(directory);
    const { keeper, lines, set } = await processOf(directory, clock);
    rmSync(directory, { recursive: true });
    for (let i = 1; i <= 2; i++) {
      set.reserve(0)?.settle(10);
      keeper.tick();
      await waitFor(() => lines.length === 1, 'it was said');
      await new Promise((resolve) => setImmediate(resolve));
    }
    mkdirSync(directory);
    await keeper.onApplicationShutdown();
    expect(lines[0]).toContain('cannot be written (ENOENT); a restart now would forget');
    expect(lines.slice(1)).toEqual(['state: the counters of quotas are saved again']);
    expect(await (await processOf(directory, clock)).remaining()).toEqual([`${label} 80`]);
  });
});

describe('quotas without a state file', () => {
  it('write nothing, and forget at a restart', async () => {
    const [directory, clock] = [folder(), new ManualWallClock()];
    const first = await processOf(directory, clock, undefined, null);
    first.set.reserve(0)?.settle(30);
    await first.keeper.onApplicationShutdown();
    expect(readdirSync(directory)).toEqual([]);
    expect(await (await processOf(directory, clock, undefined, null)).remaining()).toEqual([`${label} 100`]);
  });
});

describe('llm_proxy_quota_remaining', () => {
  it('shows the nearer one where a fixed and a sliding window have the same length', async () => {
    const { remaining, set } = await processOf(folder(), new ManualWallClock(), [
      { tokens: 100, per: 'P1D' },
      { tokens: 60, per: 'P1D', window: 'sliding' },
    ]);
    set.reserve(0)?.settle(10);
    expect(await remaining()).toEqual([`${label} 50`]);
  });
});
