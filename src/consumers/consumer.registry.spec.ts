import { describe, expect, it } from 'vitest';
import { file, load } from '../../test/support/small-config.js';
import { ConfigStore } from '../config/config.store.js';
import { ConsumerSlots } from './caller.js';
import { ConsumerRegistry } from './consumer.registry.js';
import { digestOfKey, isSameKey, newKey, newKeyLines } from './key-digest.js';

const NOW = Date.UTC(2027, 5, 30, 12);
/** As Node gives the bytes of UTF-8 in a header: whose hash stands in the file may be any bytes. */
const UTF8 = Buffer.from('schlüssel').toString('latin1');
const registry = (consumers: string): ConsumerRegistry =>
  new ConsumerRegistry(new ConfigStore(load(file({ end: `consumers: ${consumers}` })).config));
const who = (of: ConsumerRegistry, key: string | null, nowMs = NOW) => {
  const headers = key === null ? {} : { 'x-api-key': key };
  const { caller, error } = of.identify(headers, Object.entries(headers).flat(), nowMs);
  return [caller === null ? null : `${caller.id}/${caller.key}`, error?.code ?? null];
};

describe('ConsumerRegistry', () => {
  const known = registry(`
  - { id: a, keys: [{ id: one, value: key-a1 }, { id: two, sha256: ${digestOfKey('key-a2').toUpperCase()} }] }
  - { id: b, keys: [{ id: off, value: key-b1, disabled: true }, { id: old, value: key-b2, expires: 2027-06-29 },
                    { id: last-day, value: key-b3, expires: 2027-06-30 }, { id: hour, value: key-b4, expires: "2027-06-30T12:00:00Z" }] }
  - { id: c, disabled: true, keys: [{ id: k, value: key-c1 }, { id: off, value: key-c2, disabled: true }] }
  - { id: d, keys: [{ id: k, sha256: ${digestOfKey(UTF8)} }] }`);

  it.each([
    ['key-a1', 'a/one', null],
    ['key-a2', 'a/two', null],
    ['key-a3', null, 'invalid_api_key'],
    ['KEY-A1', null, 'invalid_api_key'],
    [digestOfKey('key-a1'), null, 'invalid_api_key'],
    [null, null, 'missing_api_key'],
    ['', null, 'missing_api_key'],
    ['key-a1,key-a2', null, 'invalid_api_key'],
    ['key-b1', 'b/off', 'api_key_disabled'],
    ['key-b2', 'b/old', 'api_key_expired'],
    ['key-b3', 'b/last-day', null],
    ['key-b4', 'b/hour', 'api_key_expired'],
    ['key-c1', 'c/k', 'consumer_disabled'],
    ['key-c2', 'c/off', 'api_key_disabled'],
    [UTF8, 'd/k', null],
  ])('%s is %s, %s', (key, caller, code) => expect(who(known, key)).toEqual([caller, code]));

  it('lets a key through to the last moment of its day', () => {
    expect(who(known, 'key-b3', Date.UTC(2027, 6, 1) - 1)[1]).toBeNull();
    expect(who(known, 'key-b3', Date.UTC(2027, 6, 1))[1]).toBe('api_key_expired');
  });

  it('is open without consumers, closed with an empty list', () => {
    expect(new ConsumerRegistry(new ConfigStore(load(file({})).config)).closed).toBe(false);
    const empty = registry('[]');
    expect(empty.closed).toBe(true);
    expect(who(empty, 'x')).toEqual([null, 'invalid_api_key']);
  });

  it('gives callers with the same selectors one list of them, and others another', () => {
    const of = registry(`
  - { id: a, select: { models: x }, keys: [{ id: k, value: a }, { id: l, value: aa, select: { models: y } }] }
  - { id: b, keys: [{ id: k, value: b, select: { models: x } }] }
  - { id: c, select: { models: x }, keys: [{ id: k, value: c }] }
  - { id: d, select: { upstreams: x }, keys: [{ id: k, value: d }] }
  - { id: e, keys: [{ id: k, value: e }] }
  - { id: f, keys: [{ id: k, value: f }] }`);
    const lists = ['a', 'aa', 'b', 'c', 'd', 'e', 'f'].map(
      (key) => of.identify({ 'api-key': key }, [], NOW).caller?.selects,
    );
    expect(lists[0]).toBe(lists[3]);
    expect(lists[5]).toBe(lists[6]);
    expect(new Set(lists).size).toBe(5);
    expect(lists[1]?.map(({ models }) => models?.text)).toEqual(['x', 'y']);
    expect(lists[2]?.map(({ models }) => models?.text)).toEqual([undefined, 'x']);
  });

  it('gives all keys of a consumer the same places', () => {
    const of = registry('[{ id: a, max_concurrency: 1, keys: [{ id: k, value: x }, { id: l, value: y }] }]');
    const [first, second] = ['x', 'y'].map((key) => of.identify({ 'api-key': key }, [], NOW).caller);
    expect(first?.slots.take()).toBe(true);
    expect(second?.slots.take()).toBe(false);
    first?.slots.giveBack();
    expect(second?.slots.take()).toBe(true);
  });
});

describe('ConsumerSlots', () => {
  it('never gives back more than was taken', () => {
    const slots = new ConsumerSlots(Infinity);
    expect(slots.take()).toBe(true);
    slots.giveBack();
    expect(() => slots.giveBack()).toThrow();
    expect(slots.active).toBe(0);
  });
});

describe('keys', () => {
  it('are new each time, and no header splits them', () => {
    const keys = new Set(Array.from({ length: 100 }, newKey));
    expect(keys.size).toBe(100);
    for (const key of keys) expect(key).toMatch(/^lp-[A-Za-z0-9_-]{43}$/);
  });
  it('come with the line of the file that lets them in', () => {
    const [key = '', line = ''] = newKeyLines('a "b"');
    const { config } = load(file({ end: `consumers:\n  - id: c\n    keys:\n      ${line}` }));
    expect(config.consumers?.[0]?.keys[0]).toMatchObject({ id: 'a "b"', digest: digestOfKey(key) });
    expect(line).not.toContain(key);
  });

  it('are compared whole', () => {
    expect(isSameKey('a', 'a')).toBe(true);
    expect(isSameKey('a', 'b')).toBe(false);
    expect(isSameKey('', 'b')).toBe(false);
  });
});
