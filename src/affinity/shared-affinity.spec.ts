import { describe, expect, it } from 'vitest';
import type { SharedPart, SharedState } from '../state/shared-state.js';
import { AffinityRegistry } from './affinity.registry.js';
import { SharedAffinity } from './shared-affinity.js';

/** Replicas that hear each other; what one of them leads no other does. */
class Bus {
  readonly told: string[] = [];
  readonly #parts = new Map<string, SharedPart>();
  readonly #led = new Set<string>();

  replica(name: string) {
    const registry = new AffinityRegistry({ now: () => 0 });
    const store = {
      tell: (topic: string, text: string) => {
        this.told.push(`${name} ${topic}`);
        for (const [other, part] of this.#parts)
          if (other !== name) part.happened({ kind: 'told', replica: name, topic, text });
        return Promise.resolve();
      },
      lead: (task: string) => Promise.resolve(!this.#led.has(task) && this.#led.add(task) !== undefined),
    };
    const state = { ok: true, store, join: (part: SharedPart) => this.#parts.set(name, part) };
    const shared = new SharedAffinity(registry, state as unknown as SharedState);
    return { registry, shared };
  }
}

/** All that follows from what was said has happened: nothing here waits for anything but promises. */
const settled = () => new Promise((resolve) => setImmediate(resolve));

const messages = (...texts: string[]) =>
  Buffer.from(JSON.stringify(texts.map((content) => ({ role: 'user', content }))));
const served = ({ registry, shared }: ReturnType<Bus['replica']>, upstream: string, ...texts: string[]) => {
  const place = { upstream, key: null };
  const recollection = registry.recall('s', messages(...texts));
  registry.remember(recollection, place);
  shared.remember(recollection, place);
};
const placeAt = ({ registry }: ReturnType<Bus['replica']>, ...texts: string[]) =>
  registry.recall('s', messages(...texts)).place?.upstream ?? null;

describe('SharedAffinity', () => {
  it('tells at once where a conversation was served', () => {
    const bus = new Bus();
    const [one, two] = [bus.replica('one'), bus.replica('two')];
    served(one, 'u', 'hi');
    expect(placeAt(two, 'hi', 'and')).toBe('u');
    served(two, 'v', 'hi', 'and');
    expect(placeAt(one, 'hi', 'and', 'so')).toBe('v');
  });

  it('tells a replica that starts later, by one of the others, and nobody who knows something', async () => {
    const bus = new Bus();
    const [one, two] = [bus.replica('one'), bus.replica('two')];
    for (let i = 0; i < 600; i++) served(one, i % 2 === 0 ? 'u' : 'v', `talk ${i}`);
    const three = bus.replica('three');
    expect(placeAt(three, 'talk 0')).toBeNull();
    bus.told.length = 0;
    three.shared.joined();
    await settled();
    expect([placeAt(three, 'talk 0', 'x'), placeAt(three, 'talk 599', 'x')]).toEqual(['u', 'v']);
    const answers = bus.told.filter((told) => told.endsWith('affinity-known'));
    expect(new Set(answers).size).toBe(1);
    expect(answers).toHaveLength(2);
    bus.told.length = 0;
    two.shared.joined();
    await settled();
    expect(bus.told).toEqual([]);
  });

  it('lets what a replica found itself stand', async () => {
    const bus = new Bus();
    const one = bus.replica('one');
    served(one, 'u', 'hi');
    const two = bus.replica('two');
    two.shared.joined();
    two.registry.remember(two.registry.recall('s', messages('hi')), { upstream: 'v', key: null });
    await settled();
    expect(placeAt(two, 'hi')).toBe('v');
  });
});
