import fc from 'fast-check';
import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { canonOf } from '../common/history/canon.js';
import { hexOf, HistoryChain } from '../common/history/history-chain.js';
import { SessionRegistry, type SessionLimits } from './session.registry.js';

interface Message {
  readonly role: string;
  readonly content?: unknown;
  readonly [key: string]: unknown;
}

const user = (content: unknown, rest: object = {}): Message => ({ role: 'user', content, ...rest });
const assistant = (content: unknown, rest: object = {}): Message => ({ role: 'assistant', content, ...rest });
const bytes = (messages: readonly unknown[]): Buffer => Buffer.from(JSON.stringify(messages));

class ManualClock {
  ms = 0;
  now(): number {
    return this.ms;
  }
}

function registry(
  limits?: SessionLimits,
  clock = new ManualClock(),
): (messages: readonly unknown[]) => string {
  const sessions = new SessionRegistry(clock, limits);
  return (messages) => sessions.resolve(bytes(messages)) ?? 'none';
}

describe('SessionRegistry', () => {
  it('keeps the id while a history grows, and tells histories apart', () => {
    const resolve = registry();
    const history = [user('first')];
    const id = resolve(history);
    expect(id).toMatch(/^[0-9a-f]{64}$/);
    expect(id).toBe(createHash('sha256').update('{"content":"first","role":"user"}').digest('hex'));
    for (let i = 0; i < 5; i++) {
      history.push(assistant(`a${i}`), user('x'.repeat(700)));
      expect(resolve(history)).toBe(id);
    }
    expect(resolve([user('second')])).not.toBe(id);
    expect(resolve(history.slice(0, 3))).toBe(id);
    expect(resolve([...history.slice(0, 4), user('a branch')])).toBe(id);
  });

  it('begins at the first user message, or at the first one of all', () => {
    const resolve = registry();
    const id = resolve([{ role: 'system', content: 'A' }, user('q')]);
    expect(
      resolve([{ role: 'system', content: 'B' }, { role: 'developer' }, user('q'), assistant('a')]),
    ).toBe(id);
    expect(resolve([user('q')])).toBe(id);
    expect(resolve([{ role: 'system', content: 'A' }])).not.toBe(resolve([{ role: 'system', content: 'B' }]));
    expect(new SessionRegistry(new ManualClock()).resolve(Buffer.from('[ ]'))).toBeUndefined();
    expect(new SessionRegistry(new ManualClock()).resolve(Buffer.from('[1,'))).toBeUndefined();
  });

  it('prefers the longest known prefix', () => {
    const clock = new ManualClock();
    const resolve = registry({ idleMs: 100 }, clock);
    const long = [user('q'), assistant('a'), user('r')];
    const old = resolve(long.slice(0, 1));
    clock.ms = 200;
    const middle = resolve(long.slice(0, 2));
    expect(middle).not.toBe(old);
    expect(resolve(long)).toBe(middle);
  });

  it('does not see what clients move between turns, nor fields it does not cover', () => {
    const resolve = registry();
    const text = { type: 'text', text: 'q' };
    const id = resolve([user([{ ...text, cache_control: { type: 'ephemeral' } }])]);
    expect(resolve([user([text], { cache_control: {}, reasoning: 'r', x: 1 }), assistant('a')])).toBe(id);
    expect(resolve([user([{ text: 'q', type: 'text' }])])).toBe(id);
    expect(resolve([user([{ ...text, reasoning: 'r' }])])).not.toBe(id);
    for (const key of ['name', 'tool_calls', 'tool_call_id'])
      expect(resolve([user([text], { [key]: 'x' })])).not.toBe(id);
  });

  it('holds a thousand sessions, the last used ones, for six hours after their use', () => {
    const clock = new ManualClock();
    const sessions = new SessionRegistry(clock);
    const grown = (name: string): string | undefined => sessions.resolve(bytes([user(name), user('more')]));
    const first = sessions.resolve(bytes([user('0')]));
    const second = sessions.resolve(bytes([user('1')]));
    for (let i = 2; i < 1000; i++) sessions.resolve(bytes([user(String(i))]));
    expect(grown('0')).toBe(first);
    sessions.resolve(bytes([user('one more')]));
    expect(sessions.size).toBe(1000);
    expect([grown('0') === first, grown('1') === second]).toEqual([true, false]);
    clock.ms = 6 * 3600_000 - 1;
    expect(grown('0')).toBe(first);
    clock.ms += 6 * 3600_000;
    expect(grown('0')).not.toBe(first);
    expect(sessions.size).toBe(1);
  });

  it('bounds what one session and all of them hold', () => {
    const clock = new ManualClock();
    const sessions = new SessionRegistry(clock, { prefixesPerSession: 3, prefixes: 5 });
    const long = ['a', 'b', 'c', 'd', 'e'].map((text) => user(text));
    const id = sessions.resolve(bytes(long));
    expect(sessions.prefixes).toBe(3);
    expect(sessions.resolve(bytes([...long, user('f')]))).toBe(id);
    expect(sessions.prefixes).toBe(3);
    sessions.resolve(bytes([user('x'), user('y')]));
    expect([sessions.prefixes, sessions.size]).toEqual([5, 2]);
    sessions.resolve(bytes([user('z')]));
    expect([sessions.prefixes, sessions.size]).toEqual([3, 2]);
    const huge = new SessionRegistry(clock).resolve(bytes(Array.from({ length: 20_000 }, () => 0)));
    expect(huge).toMatch(/^[0-9a-f]{64}$/);
  });

  it('forgets nothing it needs when hashing goes on where it stopped', () => {
    const clock = new ManualClock();
    const sessions = new SessionRegistry(clock, { idleMs: 100 });
    const history = [user('x'.repeat(2000)), assistant('a')];
    const old = sessions.resolve(bytes(history));
    clock.ms = 200;
    const fresh = sessions.resolve(bytes([...history, user('b')]));
    expect(fresh).not.toBe(old);
    expect(sessions.resolve(bytes(history.slice(0, 1)))).toBe(fresh);
  });
});

describe('HistoryChain', () => {
  it('gives the same hashes whether it starts anew or goes on, wherever the history changed', () => {
    const pad = 'p'.repeat(600);
    const text = fc.constantFrom(pad, 'a', 'b', `${pad}é"\\`, '}]');
    const mark = fc.option(fc.constant({ cache_control: {} }), { nil: {} });
    const message = fc
      .tuple(text, fc.constantFrom('user', 'assistant', 'system'), mark)
      .map(([content, role, rest]) => ({
        role,
        content,
        ...rest,
      }));
    const turns = fc.array(fc.tuple(fc.nat(12), fc.array(message, { maxLength: 8 })), { maxLength: 8 });
    fc.assert(
      fc.property(turns, fc.constantFrom('', ' ', '\n  '), (list, space) => {
        const remembering = new HistoryChain('first_user');
        let history: unknown[] = [];
        for (const [keep, added] of list) {
          history = [...history.slice(0, keep), ...added];
          const array = Buffer.from(
            `[${space}${history.map((m) => JSON.stringify(m)).join(`${space},${space}`)}${space}]`,
          );
          const known = remembering.follow(array);
          const whole = new HistoryChain('first_user').follow(array, true);
          if (whole === undefined) expect(known).toBeUndefined();
          else expect(known?.digests).toEqual(whole.digests.slice(-known!.digests.length));
          if (known?.resumed === false) expect(known.digests.length).toBe(whole?.digests.length);
        }
      }),
      { numRuns: 300 },
    );
  });

  it('remembers a point from which many histories branch', () => {
    const chain = new HistoryChain('first_user');
    const trunk = [user('x'.repeat(2000)), assistant('a')];
    chain.follow(bytes(trunk));
    for (let i = 0; i < 40; i++) {
      expect(chain.follow(bytes([...trunk, user(`branch ${i}`)]))?.digests.length).toBe(2);
    }
  });

  it('goes on where it stopped', () => {
    const chain = new HistoryChain('first_user');
    const history = Array.from({ length: 20 }, (_, i) => user(`${'x'.repeat(200)}${i}`));
    expect(chain.follow(bytes(history))?.resumed).toBe(false);
    const again = chain.follow(bytes(history));
    expect([again?.resumed, again?.digests.length]).toEqual([true, 1]);
    expect(chain.follow(bytes([...history, assistant('a'), user('b')]))?.digests.length).toBe(3);
    const moved = [...history.slice(0, 18), user(history[18]!.content, { cache_control: {} }), user('c')];
    const resumed = chain.follow(bytes(moved));
    expect([resumed?.resumed, resumed?.digests.length]).toEqual([true, 5]);
    expect(HistoryChain.idOf(bytes(moved))).toBe(hexOf(resumed!.digests.at(-1)!));
  });
});

describe('canonOf', () => {
  const canon = (text: string): string => canonOf(Buffer.from(text));

  it('sorts keys at every depth and keeps the order of lists', () => {
    expect(canon('{"role":"user", "content":[{"b":1,"a":[2,{"d":3,"c":4}]}],"x":1}')).toBe(
      '{"content":[{"a":[2,{"c":4,"d":3}],"b":1}],"role":"user"}',
    );
  });

  it('takes __proto__ for a plain key', () => {
    expect(canon('{"__proto__":{"role":"user"},"content":{"__proto__":{"x":1}}}')).toBe(
      '{"content":{"__proto__":{"x":1}}}',
    );
    expect(({} as { x?: number }).x).toBeUndefined();
  });

  it('lets broken, odd and bottomless messages stand for themselves', () => {
    for (const text of ['{"role":"user","content":tru}', '"x"', 'null', '[1]'])
      expect(canon(text)).toBe(text);
    const deep = `{"content":${'['.repeat(9000)}${']'.repeat(9000)}}`;
    expect(canon(deep).length).toBeGreaterThan(18_000);
  });
});
