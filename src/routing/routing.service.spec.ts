import { describe, expect, it } from 'vitest';
import { ConfigStore } from '../config/config.store.js';
import { loadConfig } from '../config/loader/load-config.js';
import type { UpstreamRegistry } from '../upstreams/upstream.registry.js';
import { RoutingService } from './routing.service.js';

function routing(models: readonly [name: string, upstreams: string[]][]): RoutingService {
  const result = loadConfig(
    {
      text: JSON.stringify({
        providers: [{ id: 'p', url: 'http://127.0.0.1:9/v1' }],
        upstreams: ['a', 'b', 'c'].map((id) => ({ id, provider: 'p', model: 'm' })),
        models: models.map(([name, upstreams]) => ({ name, upstreams })),
      }),
    },
    {},
  );
  if (!result.ok) throw new Error(JSON.stringify(result.problems));
  const registry = { get: (id: string) => ({ id }) } as unknown as UpstreamRegistry;
  return new RoutingService(new ConfigStore(result.config), registry);
}

describe('RoutingService', () => {
  it('gives the upstreams of a model in the order of the file', () => {
    const service = routing([['one', ['c', 'a']]]);
    const candidates = service.plan('one')?.candidates ?? [];
    expect(candidates.map(({ upstream }) => upstream.id)).toEqual(['c', 'a']);
    expect(candidates.every(({ model }) => model.name === 'one')).toBe(true);
  });

  it('gives the same candidates each time: their identity is a key', () => {
    const service = routing([['one', ['a']]]);
    expect(service.plan('one')?.candidates[0]).toBe(service.plan('one')?.candidates[0]);
  });

  it('lists models in file order, also those whose names look like numbers', () => {
    const service = routing([
      ['z', ['a']],
      ['10', ['a']],
      ['2', ['b']],
    ]);
    expect([...service.models].map(({ model }) => model.name)).toEqual(['z', '10', '2']);
  });

  it('knows no model that the file does not have, whatever it is called', () => {
    const service = routing([['one', ['a']]]);
    for (const name of ['', 'One', 'one ', '__proto__', 'constructor', 'toString']) {
      expect(service.plan(name)).toBeUndefined();
    }
  });

  it('finds a model that is called like a member of every object', () => {
    const service = routing([['__proto__', ['b']]]);
    expect(service.plan('__proto__')?.candidates).toHaveLength(1);
  });
});
