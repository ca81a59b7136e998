import 'reflect-metadata';
import { describe, expect, it } from 'vitest';
import { JsonDocument } from '../common/json/json-document.js';
import { loadConfig } from '../config/loader/load-config.js';
import { applyPatch, compilePatch } from './patch-plan.js';

/** What a patch of a provider makes of an empty body. */
function patched(text: string): string {
  const result = loadConfig({ text }, {});
  if (!result.ok) throw new Error(result.problems.map(({ message }) => message).join());
  const plan = compilePatch(result.config.providers.map(({ patch }) => patch));
  const document = JsonDocument.parse(Buffer.from('{}'));
  if (plan !== null) applyPatch(document, plan);
  return document.toBuffer().toString();
}

const REST = 'upstreams: [{ id: u, provider: p, model: r }]\nmodels: [{ name: m, upstreams: [u] }]';
const yaml = (patch: string): string => `providers: [{ id: p, url: "http://h", patch: ${patch} }]\n${REST}`;

describe('numbers of a patch reach the provider as they are written', () => {
  it.each([
    ['{ f: 1.0, e: 1e5, z: -0, E: 1E+2 }', '{"f":1.0,"e":1e5,"z":-0,"E":1E+2}'],
    ['{ big: 12345678901234567890, small: 0.1234567890123456789 }', '{"big":12345678901234567890,"small":0.1234567890123456789}'],
    ['{ o: { f: 1.0, l: [1.50, { g: 2.0 }, 3] } }', '{"o":{"f":1.0,"l":[1.50,{"g":2.0},3]}}'],
    ['{ a: &n 1.0, b: *n, c: &o { x: 2.0 }, d: *o, e: { <<: *o, y: 1 } }', '{"a":1.0,"b":1.0,"c":{"x":2.0},"d":{"x":2.0},"e":{"y":1,"x":2.0}}'],
    // What JSON cannot write so.
    ['{ a: .5, b: +1, c: 0x10, d: 1., e: 01 }', '{"a":0.5,"b":1,"c":16,"d":1,"e":1}'],
    ['{ a: "1.0", b: 1 }', '{"a":"1.0","b":1}'],
  ])('%s', (patch, body) => {
    expect(patched(yaml(patch))).toBe(body);
  }); // prettier-ignore

  it('an anchor elsewhere and a number of the file itself stay plain numbers', () => {
    expect(patched(`server: { port: &n 81.0e2 }\n${yaml('{ p: *n }')}`)).toBe('{"p":81.0e2}');
  });

  it('in a file of JSON too', () => {
    const patch = '{"f":1.0,"e":1e5,"z":-0,"l":[2.50,"1.0"]}';
    const text = `{"providers":[{"id":"p","url":"http://h","patch":${patch}}],"upstreams":[{"id":"u","provider":"p","model":"r"}],"models":[{"name":"m","upstreams":["u"]}]}`;
    expect(patched(text)).toBe(patch);
  });

  it('a later layer wins with its own text', () => {
    const text = `providers: [{ id: p, url: "http://h", patch: { a: 1.0, o: { b: 1.0 } } }, { id: q, url: "http://h2", patch: { a: 2, o: { b: 2.0 } } }]\n${REST}`;
    expect(patched(text)).toBe('{"a":2,"o":{"b":2.0}}');
  });
});
