import { describe, expect, it } from 'vitest';
import { JsonDocument } from '../common/json/json-document.js';
import { loadConfig } from '../config/loader/load-config.js';
import type { Attempt } from '../contracts/exchange.js';
import { PatchInterceptor } from './patch.interceptor.js';

type Layer = 'provider' | 'upstream' | 'model';

function setUp(patches: Partial<Record<Layer, object>>) {
  const patch = (layer: Layer) => (patches[layer] === undefined ? {} : { patch: patches[layer] });
  const text = JSON.stringify({
    providers: [{ id: 'p', url: 'http://127.0.0.1:9/v1', ...patch('provider') }],
    upstreams: [{ id: 'u', provider: 'p', model: 'real', ...patch('upstream') }],
    models: [{ name: 'm', upstreams: ['u'], ...patch('model') }],
  });
  const result = loadConfig({ text }, {});
  if (!result.ok) throw new Error(JSON.stringify(result.problems));
  const [model] = result.config.models;
  const [upstream] = result.config.upstreams;
  if (model === undefined || upstream === undefined) throw new Error('unreachable');
  const interceptor = new PatchInterceptor();
  const apply = (body: string): string => {
    const document = JsonDocument.parse(Buffer.from(body));
    interceptor.onAttempt({ exchange: { model }, upstream, body: document } as unknown as Attempt);
    return document.toBuffer().toString();
  };
  return { apply, applies: interceptor.appliesTo({ model, upstream, operation: 'chat' }) };
}

describe('PatchInterceptor', () => {
  it('is left out where nothing is to be patched', () => {
    expect(setUp({}).applies).toBe(false);
    expect(setUp({ model: { a: 1 } }).applies).toBe(true);
  });

  it('merges provider, then upstream, then model', () => {
    const { apply } = setUp({
      provider: { a: 'p', b: 'p', c: 'p', deep: { p: 1, x: 'p' } },
      upstream: { b: 'u', c: 'u', deep: { u: 1, x: 'u' } },
      model: { c: 'm', deep: { m: 1, x: 'm' } },
    });
    expect(JSON.parse(apply('{"a":"c","keep":1}'))).toEqual({
      a: 'p',
      keep: 1,
      b: 'u',
      c: 'm',
      deep: { p: 1, u: 1, m: 1, x: 'm' },
    });
  });

  it('starts from the body of each attempt: nothing of one leaks into the next', () => {
    const { apply } = setUp({ model: { deep: { list: [1], added: true } } });
    const first = apply('{"deep":{"mine":1}}');
    expect(apply('{"deep":{"mine":1}}')).toBe(first);
    expect(JSON.parse(apply('{}'))).toEqual({ deep: { list: [1], added: true } });
  });

  it('sets null, replaces arrays, may override model and stream', () => {
    const { apply } = setUp({ model: { a: null, list: [9], model: 'other', stream: false } });
    expect(JSON.parse(apply('{"model":"m","stream":true,"a":1,"list":[1,2]}'))).toEqual({
      model: 'other',
      stream: false,
      a: null,
      list: [9],
    });
  });

  it('leaves the bytes of what it does not touch alone', () => {
    const { apply } = setUp({ model: { o: { added: 1 } } });
    const kept = '"big":12345678901234567890, "f":1.0,"e":1e5,"s":"\\u00e9\\ud800"';
    const patched = apply(`{${kept},"o":{${kept}}}`);
    expect(patched.split(kept)).toHaveLength(3);
  });
});
