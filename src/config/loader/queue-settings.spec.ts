import 'reflect-metadata';
import { describe, expect, it } from 'vitest';
import { formatProblem } from './config-problem.js';
import { loadConfig } from './load-config.js';

interface Parts {
  readonly groups?: unknown;
  readonly providers?: readonly object[];
  readonly upstreams?: readonly object[];
  readonly model?: object;
}

function loaded({ groups, model = {}, providers = [{}], upstreams = [{}] }: Parts) {
  const ids = upstreams.map((_, i) => `u${i}`);
  const result = loadConfig(
    {
      text: JSON.stringify({
        ...(groups === undefined ? {} : { slot_groups: groups }),
        providers: providers.map((extra, i) => ({ id: `p${i}`, url: `http://h${i}/v1`, ...extra })),
        upstreams: upstreams.map((extra, i) => ({ id: ids[i], provider: 'p0', model: 'r', ...extra })),
        models: [{ name: 'm', upstreams: ids, ...model }],
      }),
    },
    {},
  );
  if (!result.ok) throw new Error(result.problems.map(formatProblem).join('\n'));
  return {
    config: result.config,
    warnings: result.warnings.map(({ path, message }) => `${path}: ${message}`),
  };
}

describe('slot_groups', () => {
  it('is a limit, or a limit with a pause', () => {
    const { config } = loaded({
      groups: { gpu0: 1, gpu1: { limit: 2, settle: 'PT200MS' } },
      upstreams: [{ slot_group: 'gpu0' }, { slot_group: 'gpu1' }],
    });
    expect(config.slotGroups).toEqual([
      { id: 'gpu0', limit: 1, settleMs: 0 },
      { id: 'gpu1', limit: 2, settleMs: 200 },
    ]);
    expect(config.upstreams.map(({ slotGroup }) => slotGroup)).toEqual(config.slotGroups);
  });

  it("is named by the provider, or by the upstream, which wins; null takes it out; the upstream's pause wins", () => {
    const { config } = loaded({
      groups: { gpu0: { limit: 1, settle: 'PT1S' }, gpu1: 1 },
      providers: [{ slot_group: 'gpu0' }],
      upstreams: [
        {},
        { slot_group: 'gpu1' },
        { slot_group: null },
        { settle: 'PT0S' },
        { slot_group: null, settle: 'PT2S', max_concurrency: 1 },
      ],
    });
    expect(config.upstreams.map(({ slotGroup }) => slotGroup?.id ?? null)).toEqual([
      'gpu0',
      'gpu1',
      null,
      'gpu0',
      null,
    ]);
    expect(config.upstreams.map(({ settleMs }) => settleMs)).toEqual([1000, 0, 0, 0, 2000]);
  });
});

describe('queue and heartbeat', () => {
  it('are off by default, and have defaults for all they hold', () => {
    expect(loaded({}).config.models[0]).toMatchObject({ queue: null, heartbeat: null });
    expect(loaded({ model: { queue: {}, heartbeat: {} } }).config.models[0]).toMatchObject({
      queue: { size: 100, waitMs: 20_000, maxBytes: 256 * 1024 ** 2, ageingMs: 0 },
      heartbeat: { afterMs: 10_000, everyMs: 10_000 },
    });
  });

  it('take what the file says', () => {
    const model = {
      queue: { size: 5, wait: 'PT1M', max_bytes: '1MiB', ageing: 'PT10S' },
      heartbeat: { after: 'PT0S', every: 'PT5S' },
      upstreams: ['u0', { upstream: 'u1', spill_after: 'PT5S', spill_min_priority: -7 }],
    };
    const { config, warnings } = loaded({ model, upstreams: [{}, {}] });
    expect(config.models[0]).toMatchObject({
      queue: { size: 5, waitMs: 60_000, maxBytes: 1024 ** 2, ageingMs: 10_000 },
      heartbeat: { afterMs: 0, everyMs: 5000 },
      entries: [{ spill: null }, { spill: { afterMs: 5000, minPriority: -7 } }],
    });
    expect(warnings).toEqual([]);
  });
});

describe('warnings', () => {
  it.each<[Parts, string]>([
    [
      { groups: { gpu0: 1, gpu1: 1 }, upstreams: [{ slot_group: 'gpu0' }] },
      'slot_groups.gpu1: the slot group "gpu1" is used by no upstream',
    ],
    [
      { groups: { gpu0: { limit: 1, settle: 'soon' } }, upstreams: [{ slot_group: 'gpu0' }] },
      'slot_groups.gpu0.settle: "soon" is no duration and is ignored',
    ],
    [
      { groups: { gpu0: 1 }, upstreams: [{ slot_group: 'gpu0' }, {}] },
      'upstreams[1]: has the base url of upstreams[0] but is in no slot group, while that is in the slot group "gpu0"',
    ],
    [
      {
        groups: { gpu0: 1, gpu1: 1 },
        providers: [{}, { url: 'http://h0/v1/' }],
        upstreams: [{ slot_group: 'gpu0' }, { provider: 'p1', slot_group: 'gpu1' }],
      },
      'upstreams[1]: has the base url of upstreams[0] but is in the slot group "gpu1", while that is in the slot group "gpu0"',
    ],
    [
      { model: { queue: { wait: 'PT10S', ageing: 'PT10S' } } },
      'models[0].queue.ageing: is not shorter than wait, so no request ever waits that long',
    ],
    [
      { model: { heartbeat: { every: 'PT0S' } } },
      'models[0].heartbeat.every: must be more than nothing; 10000 ms are used',
    ],
    [
      { model: { queue: {}, upstreams: [{ upstream: 'u0', spill_after: 'PT1S' }] } },
      'models[0].upstreams[0].spill_after: has no effect on the first entry: nothing is before it',
    ],
    [
      {
        upstreams: [{}, {}],
        model: { queue: { wait: 'PT5S' }, upstreams: ['u0', { upstream: 'u1', spill_after: 'PT5S' }] },
      },
      'models[0].upstreams[1].spill_after: is not shorter than queue.wait, so no request ever waits that long',
    ],
    [
      { upstreams: [{ settle: 'PT1S' }] },
      'upstreams[0].settle: has no effect without a limit or a slot group: nothing waits for this upstream',
    ],
  ])('%#', (parts, warning) => {
    const { warnings } = loaded(parts);
    expect(warnings).toHaveLength(1);
    expect(warnings[0]?.slice(0, warning.length)).toBe(warning);
  });
});
