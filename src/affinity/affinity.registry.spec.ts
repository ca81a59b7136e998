import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { AffinityRegistry, type AffinityLimits, type Recollection } from './affinity.registry.js';

interface Message {
  readonly role: string;
  readonly content: unknown;
}

const system = (content: string): Message => ({ role: 'system', content });
const user = (content: string): Message => ({ role: 'user', content });
const assistant = (content: string): Message => ({ role: 'assistant', content });
const bytes = (messages: readonly unknown[]): Buffer => Buffer.from(JSON.stringify(messages));
const HOUR = 3_600_000;

class ManualClock {
  ms = 0;
  now(): number {
    return this.ms;
  }
}

function setUp(limits: AffinityLimits = {}) {
  const clock = new ManualClock();
  const registry = new AffinityRegistry(clock, limits);
  const recall = (messages: readonly unknown[], scope = 's'): Recollection =>
    registry.recall(scope, bytes(messages));
  const where = (messages: readonly unknown[], scope = 's'): string | null =>
    recall(messages, scope).place?.upstream ?? null;
  const serve = (messages: readonly unknown[], upstream: string, scope = 's'): void =>
    registry.remember(recall(messages, scope), { upstream, key: null });
  return { clock, registry, recall, where, serve };
}

/** Long enough that its hashing is resumed the next time. */
const long = (text: string): string => text.repeat(Math.ceil(1500 / text.length));

describe('AffinityRegistry', () => {
  it('knows nobody, and learns only what was served', () => {
    const { where, serve } = setUp();
    const turn = [user('q')];
    expect(where(turn)).toBeNull();
    expect(where(turn)).toBeNull();
    serve(turn, 'a');
    expect(where(turn)).toBe('a');
  });

  it.each([['q'], [long('q')]])(
    'follows a growing conversation, where the longest known prefix was',
    (text) => {
      const { where, serve } = setUp();
      const history = [system('S'), user(text)];
      for (const upstream of ['a', 'b', 'a', 'c']) {
        serve(history, upstream);
        history.push(assistant(`${text} answer`), user(`${text} next`));
        expect(where(history)).toBe(upstream);
      }
      // Each of its turns was served last by whoever served the next one.
      for (const [length, upstream] of [
        [2, 'b'],
        [4, 'a'],
        [6, 'c'],
      ] as const)
        expect(where([...history.slice(0, length), assistant('a branch')])).toBe(upstream);
    },
  );

  it('begins with all messages: the same question under another system prompt is another conversation', () => {
    const { where, serve } = setUp();
    serve([system('A'), user('hi')], 'a');
    expect(where([system('B'), user('hi')])).toBeNull();
    expect(where([user('hi')])).toBeNull();
    // The system prompt is most of the cache.
    expect(where([system('A'), user('other')])).toBe('a');
  });

  it('lets conversations with one beginning live at two places', () => {
    const { where, serve } = setUp();
    const one = [system('S'), user('one')];
    const two = [system('S'), user('two')];
    serve(one, 'a');
    serve(two, 'b');
    expect(where([...one, assistant('x'), user('y')])).toBe('a');
    expect(where([...two, assistant('x'), user('y')])).toBe('b');
    expect(where([system('S'), user('three')])).toBe('b');
  });

  it('keeps scopes apart, also where the same bytes were hashed before', () => {
    const { where, serve } = setUp();
    const history = [user(long('q'))];
    serve(history, 'a', 's');
    expect(where(history, 't')).toBeNull();
    serve(history, 'b', 't');
    expect(where([...history, assistant('x')], 's')).toBe('a');
    expect(where([...history, assistant('x')], 't')).toBe('b');
  });

  it('leaves out what clients move between turns', () => {
    const { where, serve } = setUp();
    serve([{ ...user('q'), cache_control: { type: 'ephemeral' } }], 'a');
    expect(where([user('q'), { ...assistant('x'), reasoning_content: 'hm' }])).toBe('a');
  });

  it('knows the key as well', () => {
    const { registry, recall } = setUp();
    registry.remember(recall([user('q')]), { upstream: 'a', key: '#2' });
    expect(recall([user('q'), assistant('x')]).place).toEqual({ upstream: 'a', key: '#2' });
  });

  it('forgets after six hours without use, and not before', () => {
    const { clock, registry, where, serve } = setUp();
    serve([user('q')], 'a');
    clock.ms = 5 * HOUR;
    expect(where([user('q'), assistant('x')])).toBe('a');
    clock.ms = 10.9 * HOUR;
    expect(where([user('q')])).toBe('a');
    clock.ms = 17 * HOUR;
    expect(where([user('q')])).toBeNull();
    expect(registry.size).toBe(0);
  });

  it('forgets the least recently used first', () => {
    const { registry, where, serve } = setUp({ prefixes: 3 });
    for (const name of ['one', 'two', 'three']) serve([user(name)], name);
    expect(where([user('one')])).toBe('one');
    serve([user('four')], 'four');
    expect(registry.size).toBe(3);
    expect(['one', 'two', 'three', 'four'].map((name) => where([user(name)]))).toEqual([
      'one',
      null,
      'three',
      'four',
    ]);
  });

  it('of a very long history remembers its beginning and its end', () => {
    const { registry, where, serve } = setUp({ prefixesPerHistory: 20 });
    const history = Array.from({ length: 100 }, (_, i) => user(`message ${i}`));
    serve(history, 'a');
    expect(registry.size).toBe(20);
    expect(where([...history, assistant('x')])).toBe('a');
    expect(where([...history.slice(0, 2), assistant('a branch')])).toBe('a');
  });

  it.each(['[]', '[ ]', '[1,', '{}', ''])('knows nothing of %j and remembers nothing of it', (text) => {
    const { registry } = setUp();
    const recollection = registry.recall('s', Buffer.from(text));
    expect(recollection.place).toBeNull();
    registry.remember(recollection, { upstream: 'a', key: null });
    expect(registry.size).toBe(0);
  });

  it('finds what a plain list of all served prefixes would find', () => {
    const turn = fc.record({
      messages: fc.array(fc.constantFrom('a', 'b', long('c')), { minLength: 1, maxLength: 5 }),
      scope: fc.constantFrom('s', 't'),
      place: fc.constantFrom('u', 'v', null),
    });
    fc.assert(
      fc.property(fc.array(turn, { maxLength: 30 }), (turns) => {
        const { recall, registry } = setUp();
        const served: { readonly key: string; readonly place: string }[] = [];
        for (const { messages, scope, place } of turns) {
          const keys = messages.map((_, i) => JSON.stringify([scope, messages.slice(0, i + 1)]));
          const longest = keys.toReversed().find((key) => served.some((entry) => entry.key === key));
          const expected = served.findLast((entry) => entry.key === longest)?.place ?? null;
          const recollection = recall(messages.map(user), scope);
          expect(recollection.place?.upstream ?? null).toBe(expected);
          if (place === null) continue;
          registry.remember(recollection, { upstream: place, key: null });
          const from = longest === undefined ? 0 : keys.indexOf(longest);
          for (const key of keys.slice(from)) served.push({ key, place });
        }
      }),
    );
  });
});
