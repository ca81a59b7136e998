import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { KeyConfig } from '../../config/gateway-config.js';
import { PoolKey } from './pool-key.js';
import { UpstreamKeys } from './upstream-keys.js';

class Clocks {
  now = 1000;
  wallMs = Date.UTC(2027, 0, 1);
  readonly clock = { now: () => this.now };
  readonly wallClock = () => this.wallMs;
}
const config = (id: string, more: Partial<KeyConfig> = {}): KeyConfig => ({
  id,
  value: `sk-${id}`,
  expiresAtMs: null,
  disabled: false,
  quota: [],
  ...more,
});
function pool(ids: string, order: 'round_robin' | 'ordered' = 'round_robin', clocks = new Clocks()) {
  const keys = ids.split('').map((id) => new PoolKey(config(id)));
  const at = (upstream: string) => new UpstreamKeys(upstream, keys, order, clocks.clock, clocks.wallClock);
  return { clocks, keys, at, key: (i: number) => keys[i] as PoolKey };
}
const turns = (keys: UpstreamKeys, count: number) =>
  Array.from({ length: count }, () => keys.pick(null)?.id ?? '-').join('');

describe('UpstreamKeys', () => {
  it('lets the keys take turns, for each upstream by itself', () => {
    const { at } = pool('xyz');
    const [a, b] = [at('a'), at('b')];
    expect(turns(a, 4)).toBe('xyzx');
    expect(turns(b, 2)).toBe('xy');
    expect(turns(a, 2)).toBe('yz');
  });

  it('takes the first usable one where the order says so', () => {
    const { at, key, clocks } = pool('xyz', 'ordered');
    const a = at('a');
    expect(turns(a, 2)).toBe('xx');
    key(0).restAt('a', clocks.now, 500);
    expect(turns(a, 2)).toBe('yy');
    clocks.now += 500;
    expect(turns(a, 1)).toBe('x');
  });

  it('passes by keys that rest, expired or are disabled', () => {
    const clocks = new Clocks();
    const keys = [
      new PoolKey(config('off', { disabled: true })),
      new PoolKey(config('old', { expiresAtMs: clocks.wallMs })),
      new PoolKey(config('new', { expiresAtMs: clocks.wallMs + 1 })),
    ];
    const a = new UpstreamKeys('a', keys, 'round_robin', clocks.clock, clocks.wallClock);
    expect(turns(a, 3).replaceAll('new', 'n')).toBe('nnn');
    expect(a.closedMs()).toBe(0);
    clocks.wallMs++;
    expect(a.pick(null)).toBeNull();
    expect([a.closedMs(), a.reason]).toEqual([Infinity, 'no_key']);
  });

  it('is closed for good without a key, and for an empty pool', () => {
    expect(pool('').at('a').closedMs()).toBe(Infinity);
  });

  it('opens with the first key that is back', () => {
    const { at, key, clocks } = pool('xy');
    const [a, b] = [at('a'), at('b')];
    key(0).restAt('a', clocks.now, 700);
    expect(a.closedMs()).toBe(0);
    key(1).restEverywhere(clocks.now, 300);
    expect([a.closedMs(), a.reason]).toEqual([300, 'cooling']);
    expect(b.closedMs()).toBe(0);
    expect(b.pick(null)?.id).toBe('x');
    clocks.now += 300;
    expect(a.pick(null)?.id).toBe('y');
  });

  it('passes by keys whose quotas are used up, and says so where nothing else is in the way', () => {
    const clocks = new Clocks();
    const gate = { reason: 'quota' as const, ms: 0, closedMs: () => gate.ms, turnsInMs: () => 0 };
    const keys = [new PoolKey(config('x'), gate), new PoolKey(config('y'))];
    const a = new UpstreamKeys('a', keys, 'ordered', clocks.clock, clocks.wallClock);
    expect(a.pick(null)?.id).toBe('x');
    gate.ms = 5000;
    expect(a.pick(null)?.id).toBe('y');
    keys[1]?.restEverywhere(clocks.now, 7000);
    expect([a.closedMs(), a.reason]).toEqual([5000, 'cooling']);
    keys[0]?.restAt('a', clocks.now, 6000);
    expect(a.closedMs()).toBe(6000);
    const alone = new UpstreamKeys('a', keys.slice(0, 1), 'ordered', clocks.clock, clocks.wallClock);
    expect([alone.closedMs(), alone.reason]).toEqual([6000, 'quota']);
  });

  it('tries none twice in a request', () => {
    const { at, keys } = pool('xyz');
    const a = at('a');
    const tried = new Set<PoolKey>();
    const order: string[] = [];
    for (let key = a.pick(tried); key !== null; key = a.pick(tried)) {
      tried.add(key);
      order.push(key.id);
    }
    expect(order).toEqual(['x', 'y', 'z']);
    expect(tried.size).toBe(keys.length);
  });

  it('shows probes a key without taking its turn', () => {
    const { at } = pool('xy');
    const a = at('a');
    expect(a.peek()?.id).toBe('x');
    expect(turns(a, 2)).toBe('xy');
  });
});

describe('PoolKey', () => {
  it('keeps the longer of two rests', () => {
    const { key } = pool('x');
    key(0).restEverywhere(1000, 500);
    key(0).restEverywhere(1100, 100);
    expect(key(0).restingEverywhereMs(1100)).toBe(400);
    key(0).restAt('a', 1000, 900);
    key(0).restAt('a', 1000, 100);
    expect([key(0).restingMs('a', 1000), key(0).restingMs('b', 1000)]).toEqual([900, 500]);
  });

  it('is taken back by a success where it was too fast, not where it may do nothing', () => {
    const { key } = pool('x');
    key(0).restAt('a', 1000, 500);
    key(0).restAt('b', 1000, 500);
    key(0).worked('a');
    expect([key(0).restingMs('a', 1000), key(0).restingMs('b', 1000)]).toEqual([0, 500]);
    key(0).restEverywhere(1000, 700);
    key(0).worked('a');
    expect(key(0).restingMs('a', 1000)).toBe(700);
  });

  it('has a longest rest and a first key that agree, whatever happens in whatever order', () => {
    const step = fc.record({
      kind: fc.constantFrom('rest', 'everywhere', 'worked', 'wait', 'pick'),
      key: fc.nat({ max: 2 }),
      upstream: fc.constantFrom('a', 'b'),
      ms: fc.nat({ max: 50 }),
    });
    fc.assert(
      fc.property(
        fc.array(step, { maxLength: 60 }),
        fc.constantFrom('round_robin', 'ordered'),
        (steps, order) => {
          const { at, key, clocks } = pool('xyz', order as 'ordered');
          const views = { a: at('a'), b: at('b') };
          for (const { kind, key: i, upstream, ms } of steps) {
            if (kind === 'rest') key(i).restAt(upstream, clocks.now, ms);
            else if (kind === 'everywhere') key(i).restEverywhere(clocks.now, ms);
            else if (kind === 'worked') key(i).worked(upstream);
            else if (kind === 'wait') clocks.now += ms;
            for (const view of Object.values(views)) {
              const usable = view.keys.filter((one) => one.restingMs(view.upstream, clocks.now) === 0);
              expect(view.closedMs() === 0).toBe(usable.length > 0);
              const picked = kind === 'pick' ? view.pick(null) : view.peek();
              if (picked === null) expect(usable).toEqual([]);
              else expect(usable).toContain(picked);
            }
          }
        },
      ),
    );
  });
});
