import { beforeEach, describe, expect, it } from 'vitest';
import { GatewayError } from '../common/errors/gateway-error.js';
import { ConfigStore } from '../config/config.store.js';
import { loadConfig } from '../config/loader/load-config.js';
import type { Exchange } from '../contracts/exchange.js';
import type { RoutingChoice, RoutingPolicy } from '../contracts/routing-policy.js';
import type { GatewayLog } from '../observability/log/gateway-log.js';
import type { GatewayMetrics } from '../observability/metrics/gateway.metrics.js';
import { FirstByteAverage } from '../upstreams/first-byte-average.js';
import type { Upstream } from '../upstreams/upstream.js';
import type { UpstreamRegistry } from '../upstreams/upstream.registry.js';
import { FastestPolicy } from './policies/fastest.policy.js';
import { LeastBusyPolicy } from './policies/least-busy.policy.js';
import type { Plan } from './plan.js';
import type { PolicyExplorer } from './policy.explorer.js';
import { type Asking, RoutingService } from './routing.service.js';

interface State {
  active: number;
  limit: number;
  readonly firstByte: FirstByteAverage;
}
const states = new Map<string, State>();
const told: string[] = [];
const asking = (requestId: string): Asking => ({ requestId, sight: null, mayAddress: true });
beforeEach(() => {
  states.clear();
  told.length = 0;
  for (const id of ['a', 'b', 'c', 'd'])
    states.set(id, { active: 0, limit: Infinity, firstByte: new FirstByteAverage() });
});

const policies: Record<string, RoutingPolicy> = {
  least_busy: new LeastBusyPolicy(),
  fastest: new FastestPolicy(),
  mine: { order: (choices) => choices.toReversed().slice(0, 1) },
  broken: {
    order: () => {
      throw new Error('out of order');
    },
  },
};

function routing(models: readonly object[], more: Record<string, unknown> = {}): RoutingService {
  const result = loadConfig(
    {
      text: JSON.stringify({
        providers: ['p', 'q'].map((id) => ({ id, url: 'http://127.0.0.1:9/v1' })),
        upstreams: ['a', 'b', 'c', 'd'].map((id) => ({
          id,
          provider: id < 'c' ? 'p' : 'q',
          model: id < 'd' ? `org/real-${id}:70b` : 'org/real-c:70b',
        })),
        models,
        ...more,
      }),
    },
    {},
    { routingPolicies: Object.keys(policies) },
  );
  if (!result.ok) throw new Error(JSON.stringify(result.problems));
  const upstreamOf = (id: string) => {
    const state = states.get(id) as State;
    const config = result.config.upstreams.find((upstream) => upstream.id === id);
    return { id, config, slots: state, firstByte: state.firstByte } as unknown as Upstream;
  };
  const registry = { get: upstreamOf } as unknown as UpstreamRegistry;
  const service = new RoutingService(
    new ConfigStore(result.config),
    registry,
    { policy: (name: string) => policies[name] } as unknown as PolicyExplorer,
    { pluginFailed: (...all: string[]) => told.push(all.join(' ')) } as unknown as GatewayMetrics,
    {
      pluginFailed: () => told.push('logged'),
      defaulted: (...all: string[]) => told.push(all.join(' ')),
    } as unknown as GatewayLog,
    { gateOf: () => null, gateOfKey: () => null },
  );
  service.onModuleInit();
  return service;
}

const exchange = (headers: Record<string, string> = {}): Exchange =>
  ({ id: 'r', headers }) as unknown as Exchange;
const planOf = (service: RoutingService, name: string, headers: Record<string, string> = {}): Plan =>
  service.plan(service.resolve(name, asking('r')), exchange(headers), null);
const ids = ({ candidates }: Plan): string => candidates.map(({ upstream }) => upstream.id).join('');
const error = (work: () => unknown): GatewayError => {
  try {
    work();
  } catch (thrown) {
    if (thrown instanceof GatewayError) return thrown;
    throw thrown;
  }
  throw new Error('nothing was thrown');
};

describe('RoutingService, models', () => {
  it('gives the upstreams of a model in the order of the file', () => {
    const service = routing([{ name: 'one', upstreams: ['c', 'a'] }]);
    expect(ids(planOf(service, 'one'))).toBe('ca');
  });

  it('gives the same plan each time, where nothing depends on the request', () => {
    const service = routing([{ name: 'one', upstreams: ['a'] }]);
    expect(planOf(service, 'one')).toBe(planOf(service, 'one'));
  });

  it('lists models in file order, also those whose names look like numbers', () => {
    const service = routing(['z', '10', '2'].map((name) => ({ name, upstreams: ['a'] })));
    expect([...service.visible(null)].map(({ name }) => name)).toEqual(['z', '10', '2']);
  });

  it('knows no model that the file does not have, whatever it is called', () => {
    const service = routing([{ name: 'one', upstreams: ['a'] }]);
    for (const name of ['', 'One', 'one ', '__proto__', 'constructor', 'toString', 'p/org/real-a:70b']) {
      expect(service.named(name, null)).toBeUndefined();
      expect(error(() => service.resolve(name, asking('r'))).code).toBe('model_not_found');
    }
  });

  it('finds a model that is called like a member of every object', () => {
    const service = routing([{ name: '__proto__', upstreams: ['b'] }]);
    expect(ids(planOf(service, '__proto__'))).toBe('b');
  });

  it('takes unknown names to the default model, and says so', () => {
    const service = routing([{ name: 'AUTO', upstreams: ['b'] }], { default_model: 'AUTO' });
    expect(service.resolve('gpt-x', asking('r1')).model.name).toBe('AUTO');
    expect(told).toEqual(['r1 gpt-x AUTO']);
    expect(service.named('gpt-x', null)).toBeUndefined();
  });
});

describe('RoutingService, tiers and orders', () => {
  const entries = [
    { upstream: 'd', tier: 3 },
    { upstream: 'b', tier: -1 },
    { upstream: 'c', tier: 2 },
    { upstream: 'a', tier: 2 },
  ];

  it('puts tiers in rising order, and keeps the order of the file inside one', () => {
    expect(ids(planOf(routing([{ name: 'm', upstreams: entries }]), 'm'))).toBe('bcad');
  });

  it('orders within a tier only', () => {
    const service = routing([{ name: 'm', upstreams: entries, order: 'least_busy' }]);
    const busy = (id: string, active: number, limit = Infinity) =>
      Object.assign(states.get(id) as State, { active, limit });
    busy('b', 9, 10);
    busy('c', 1, 2);
    expect(ids(planOf(service, 'm'))).toBe('bacd');
    busy('a', 5, 8);
    expect(ids(planOf(service, 'm'))).toBe('bcad');
    busy('a', 4);
    busy('c', 3);
    expect(ids(planOf(service, 'm'))).toBe('bcad');
  });

  it('puts the fastest first, and those without data before it', () => {
    (policies.fastest as FastestPolicy).random = () => 0.5;
    const service = routing([{ name: 'm', upstreams: ['a', 'b', 'c'], order: 'fastest' }]);
    states.get('a')?.firstByte.add(300);
    states.get('b')?.firstByte.add(100);
    expect(ids(planOf(service, 'm'))).toBe('cba');
    states.get('c')?.firstByte.add(200);
    expect(ids(planOf(service, 'm'))).toBe('bca');
    const dice = [0.04, 0.99];
    (policies.fastest as FastestPolicy).random = () => dice.shift() ?? 0;
    expect(ids(planOf(service, 'm'))).toBe('abc');
  });

  it('asks a policy of a plugin, and tries last what it leaves out', () => {
    const service = routing([{ name: 'm', upstreams: ['a', 'b', 'c'], order: 'mine' }]);
    expect(ids(planOf(service, 'm'))).toBe('cab');
  });

  it('falls back to the order of the file where a policy throws', () => {
    const service = routing([{ name: 'm', upstreams: ['b', 'a'], order: 'broken' }]);
    expect(ids(planOf(service, 'm'))).toBe('ba');
    expect(told).toEqual(['broken order', 'logged']);
  });

  const inPlace: [string, (choices: RoutingChoice[]) => readonly RoutingChoice[], string][] = [
    ['turns it round', (choices) => choices.reverse(), 'cba'],
    ['takes one out', (choices) => choices.splice(1, 1), 'bac'],
    ['empties it', (choices) => ((choices.length = 0), choices), 'abc'],
  ];
  it.each(inPlace)(
    'gives each request the whole list, whatever a policy did to the last: %s',
    (_what, order, then) => {
      policies['mine'] = { order };
      const service = routing([{ name: 'm', upstreams: ['a', 'b', 'c'], order: 'mine' }]);
      for (let i = 0; i < 3; i++) expect(ids(planOf(service, 'm'))).toBe(then);
      expect(told).toEqual([]);
      policies['mine'] = { order: (choices) => choices };
    },
  );

  const noOrders: [string, unknown][] = [
    ['a promise', Promise.resolve([])],
    ['nothing', undefined],
    ['null', null],
    ['a text', 'abc'],
    ['what looks like a list', { length: 2 }],
  ];
  it.each(noOrders)('falls back to the order of the file where a policy gives back %s', (_what, returned) => {
    policies['mine'] = { order: () => returned as RoutingChoice[] };
    const service = routing([{ name: 'm', upstreams: ['b', 'a'], order: 'mine' }]);
    expect(ids(planOf(service, 'm'))).toBe('ba');
    expect(told).toEqual(['mine order', 'logged']);
  });

  it('hears the rejection of a policy that is wrongly asynchronous', async () => {
    const unheard: unknown[] = [];
    const hear = (error: unknown) => void unheard.push(error);
    process.on('unhandledRejection', hear);
    policies['mine'] = { order: () => Promise.reject(new Error('late')) as never };
    planOf(routing([{ name: 'm', upstreams: ['b', 'a'], order: 'mine' }]), 'm');
    await new Promise((resolve) => setImmediate(resolve));
    process.off('unhandledRejection', hear);
    expect([told, unheard]).toEqual([['mine order', 'logged'], []]);
  });

  it('shows no choice that could be changed', () => {
    policies['mine'] = {
      order: (choices) => (Object.assign(choices[0] as object, { candidate: null }), choices),
    };
    const service = routing([{ name: 'm', upstreams: ['b', 'a'], order: 'mine' }]);
    for (let i = 0; i < 2; i++) expect(ids(planOf(service, 'm'))).toBe('ba');
    expect(told).toEqual(['mine order', 'logged', 'mine order', 'logged']);
  });

  it('shows a policy what a choice is at this moment', () => {
    const seen: RoutingChoice[] = [];
    policies.mine = { order: (choices) => (seen.push(...choices), choices) };
    const service = routing([{ name: 'm', upstreams: [{ upstream: 'a', weight: 7 }, 'b'], order: 'mine' }]);
    states.get('a')?.firstByte.add(40);
    Object.assign(states.get('a') as State, { active: 2, limit: 4 });
    planOf(service, 'm');
    const [{ upstream, entry, active, limit, firstByteMs }] = seen as [RoutingChoice];
    expect([upstream.id, entry.weight, active, limit, firstByteMs]).toEqual(['a', 7, 2, 4, 40]);
    expect(seen[1]?.firstByteMs).toBeNull();
  });
});

describe('RoutingService, hints of a client', () => {
  const models = [
    {
      name: 'm',
      upstreams: [
        { upstream: 'a', tier: 1 },
        { upstream: 'b', tier: 2 },
        { upstream: 'c', tier: 3 },
      ],
    },
  ];
  const hinted = () => routing(models, { server: { allow_hints: true } });

  it('narrows by tier and by provider, and says what it left out', () => {
    const plan = planOf(hinted(), 'm', { 'x-llm-proxy-tier': '2', 'x-llm-proxy-providers': ' q,p ,' });
    expect(ids(plan)).toBe('bc');
    expect(plan.leftOut.map(({ candidate, reason }) => [candidate.upstream.id, reason])).toEqual([
      ['a', 'tier'],
    ]);
    expect(ids(planOf(hinted(), 'm', { 'x-llm-proxy-providers': 'q' }))).toBe('c');
    expect(ids(planOf(hinted(), 'm', { 'x-llm-proxy-tags': 'sys/provider=p, sys/upstream==b' }))).toBe('b');
  });

  it.each([
    ['x-llm-proxy-tier', '4'],
    ['x-llm-proxy-tier', 'two'],
    ['x-llm-proxy-tier', ''],
    ['x-llm-proxy-tier', '1, 2'],
    ['x-llm-proxy-tier', '1.5'],
    ['x-llm-proxy-providers', 'nobody'],
    ['x-llm-proxy-providers', ' , '],
    ['x-llm-proxy-tags', 'region=mars'],
    ['x-llm-proxy-tags', 'sys/provider'],
    ['x-llm-proxy-tags', '!region'],
    ['x-llm-proxy-tags', 'sys/provider!=q'],
    ['x-llm-proxy-tags', 'a = = b'],
    ['x-llm-proxy-tags', ''],
  ])('refuses %s: "%s"', (header, value) => {
    const refused = error(() => planOf(hinted(), 'm', { [header]: value }));
    expect([refused.status, refused.code, refused.param]).toEqual([400, 'no_candidates', header]);
  });

  it('ignores them where they are not allowed', () => {
    expect(ids(planOf(routing(models), 'm', { 'x-llm-proxy-tier': 'two' }))).toBe('abc');
  });
});

describe('RoutingService, direct addressing', () => {
  const direct = (more: Record<string, unknown> = {}) =>
    routing([{ name: 'q/taken', upstreams: ['a'] }], { server: { direct: true }, ...more });

  it('finds the upstreams of a provider by the real name of their model, in file order', () => {
    const service = direct();
    for (const name of ['q/org/real-c:70b', 'q:org/real-c:70b']) {
      const plan = planOf(service, name);
      expect(ids(plan)).toBe('cd');
      expect(plan.model.name).toBe('');
      // One compiled candidate for all requests, since its identity is a key.
      expect(planOf(service, name).candidates[0]).toBe(plan.candidates[0]);
    }
    expect([...service.visible(null)]).toHaveLength(1);
  });

  it('prefers the exact name of a model, and knows nothing that is not configured', () => {
    expect(ids(planOf(direct(), 'q/taken'))).toBe('a');
    for (const name of ['q/other', 'nobody/org/real-c:70b', 'q/', 'q', '/org/real-c:70b', '__proto__/x']) {
      expect(error(() => direct().resolve(name, asking('r'))).code).toBe('model_not_found');
    }
  });
});
