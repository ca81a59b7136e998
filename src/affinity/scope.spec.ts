import { describe, expect, it } from 'vitest';
import { Scopes } from './scope.js';

const tools = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));

describe('Scopes', () => {
  const scopes = new Scopes();
  const plain = scopes.of('', 'm', [undefined]);

  it('is the same for the same consumer, model and tools, whoever spells them', () => {
    expect(scopes.of('', 'm', [undefined])).toBe(plain);
    const one = scopes.of('c', 'm', [Buffer.from('[{"type":"function","function":{"name":"f"}}]')]);
    const other = scopes.of('c', 'm', [Buffer.from('[ {"function":{"name":"f"}, "type":"function"} ]')]);
    expect(other).toBe(one);
    expect(scopes.of('c', 'm', [Buffer.from('[{"type":"function","function":{"name":"f"}}]')])).toBe(one);
  });

  it('leaves out marks of caches', () => {
    const marked = tools([{ name: 'f', cache_control: { type: 'ephemeral' } }]);
    expect(scopes.of('', 'm', [marked])).toBe(scopes.of('', 'm', [tools([{ name: 'f' }])]));
  });

  it.each<[string, [string, string, (Buffer | undefined)[]]]>([
    ['consumer', ['c', 'm', [undefined]]],
    ['model', ['', 'n', [undefined]]],
    ['tools', ['', 'm', [tools([])]]],
    ['other tools', ['', 'm', [tools([{ name: 'g' }])]]],
    ['broken tools', ['', 'm', [Buffer.from('[{')]]],
    ['its place', ['', 'm', [undefined, tools([])]]],
  ])('differs by %s', (_name, args) => {
    expect(scopes.of(...args)).not.toBe(plain);
    expect(scopes.of(...args)).toHaveLength(plain.length);
  });

  it('cannot be forged by names that hold what separates them', () => {
    expect(scopes.of('a","b', 'c', [])).not.toBe(scopes.of('a', 'b","c', []));
  });

  it('keeps its answers when many lists of tools pass by', () => {
    const first = scopes.of('', 'm', [tools([{ name: 'first' }])]);
    for (let i = 0; i < 1100; i++) scopes.of('', 'm', [tools([{ name: `f${i}` }])]);
    expect(scopes.of('', 'm', [tools([{ name: 'first' }])])).toBe(first);
  });
});
