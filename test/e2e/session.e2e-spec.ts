import { describe, expect, it } from 'vitest';
import { stage, type Stage, type StageOptions } from '../support/stage.js';

const NAME = 'x-opencode-session';
const withHeader: StageOptions = { provider: { session_header: NAME } };
type Message = Record<string, unknown>;
const user = (content: unknown): Message => ({ role: 'user', content });
const assistant = (content: unknown, more: object = {}): Message => ({ role: 'assistant', content, ...more });

/** The session that the upstream sees for this history. */
async function sessionOf(set: Stage, messages: unknown, more: object = {}): Promise<string | undefined> {
  expect((await set.chat({ messages, ...more }).end()).status).toBe(200);
  return set.a.last.header(NAME);
}

describe('the session header', () => {
  it('is the same for a growing history and another for another', async () => {
    const set = await stage(withHeader);
    const history = [user('one')];
    const first = await sessionOf(set, history);
    expect(first).toMatch(/^[0-9a-f]{64}$/);
    for (let i = 0; i < 10; i++) {
      history.push(assistant(`answer ${i}`), user(`question ${i}`));
      expect(await sessionOf(set, history)).toBe(first);
    }
    expect(await sessionOf(set, [user('two')])).not.toBe(first);
  });

  it('takes the id of the longest known prefix', async () => {
    const set = await stage(withHeader);
    const a = await sessionOf(set, [user('a'), assistant('b'), user('c')]);
    const other = await sessionOf(set, [user('z'), assistant('b'), user('c')]);
    expect(other).not.toBe(a);
    expect(await sessionOf(set, [user('a'), assistant('b'), user('d')])).toBe(a);
    expect(await sessionOf(set, [user('a')])).toBe(a);
    expect(await sessionOf(set, [user('z'), assistant('b'), user('c'), assistant('e')])).toBe(other);
  });

  it('is the same for the same history', async () => {
    const set = await stage(withHeader);
    const again = await stage(withHeader);
    const history = [user('one'), assistant('two'), user('three')];
    expect(await sessionOf(set, history)).toBe(await sessionOf(again, history));
  });

  it('ignores what stands before the first user message', async () => {
    const set = await stage(withHeader);
    const first = await sessionOf(set, [{ role: 'system', content: 'today is Monday' }, user('one')]);
    expect(await sessionOf(set, [{ role: 'system', content: 'today is Tuesday' }, user('one')])).toBe(first);
    expect(await sessionOf(set, [user('one'), assistant('two')])).toBe(first);
  });

  it('begins at the first message where there is no user message', async () => {
    const set = await stage(withHeader);
    const first = await sessionOf(set, [{ role: 'system', content: 'x' }]);
    expect(first).toMatch(/^[0-9a-f]{64}$/);
    expect(await sessionOf(set, [{ role: 'system', content: 'y' }])).not.toBe(first);
  });

  it.each([
    ['[]', []],
    ['null', null],
    ['a text', 'x'],
    ['absent', undefined],
  ])('is not sent where messages are %s', async (_what, messages) => {
    const set = await stage(withHeader);
    await set.chat({ messages }).end();
    expect(set.a.last.headerNames).not.toContain(NAME);
  });

  it("replaces the client's, also where none is sent", async () => {
    const set = await stage(withHeader);
    await set.chat({}, { headers: { [NAME]: 'of-the-client' } }).end();
    expect(set.a.last.headerLines.filter(([name]) => name.toLowerCase() === NAME)).toHaveLength(1);
    expect(set.a.last.header(NAME)).toMatch(/^[0-9a-f]{64}$/);
    await set.chat({ messages: [] }, { headers: { [NAME]: 'of-the-client' } }).end();
    expect(set.a.last.header(NAME)).toBeUndefined();
  });

  it('leaves out what clients move between turns', async () => {
    const set = await stage(withHeader);
    const part = { type: 'text', text: 'x' };
    const first = await sessionOf(set, [
      user([{ ...part, cache_control: { type: 'ephemeral' } }]),
      assistant('b', { reasoning: 'r', reasoning_content: 'rc', reasoning_details: [] }),
    ]);
    expect(await sessionOf(set, [user([part]), assistant('b'), user('c')])).toBe(first);
    expect(
      await sessionOf(set, [
        { ...user([{ cache_control: null, ...part }]), cache_control: 1 },
        assistant('b', { reasoning: 'other' }),
        user('d'),
      ]),
    ).toBe(first);
  });

  it.each([
    ['role', { role: 'assistant', content: 'b' }, { role: 'tool', content: 'b' }],
    ['content', assistant('b'), assistant('B')],
    ['name', assistant('b', { name: 'x' }), assistant('b', { name: 'y' })],
    [
      'tool_calls',
      assistant(null, { tool_calls: [{ id: '1' }] }),
      assistant(null, { tool_calls: [{ id: '2' }] }),
    ],
    [
      'tool_call_id',
      { role: 'tool', content: 'b', tool_call_id: '1' },
      { role: 'tool', content: 'b', tool_call_id: '2' },
    ],
  ])('covers %s', async (_what, one, two) => {
    const fresh = await stage(withHeader);
    // Two histories that begin differently in their second message share only the first.
    const first = await sessionOf(fresh, [user(JSON.stringify(one)), one]);
    const second = await stage(withHeader);
    expect(await sessionOf(second, [user(JSON.stringify(one)), two])).not.toBe(first);
  });

  it('does not mind the order of keys, but that of arrays', async () => {
    const history = (content: unknown): Message[] => [user(content)];
    const one = await stage(withHeader);
    const id = await sessionOf(one, history([{ type: 'text', text: 'x' }, { a: { c: 1, b: 2 } }]));
    const two = await stage(withHeader);
    expect(await sessionOf(two, history([{ text: 'x', type: 'text' }, { a: { b: 2, c: 1 } }]))).toBe(id);
    const three = await stage(withHeader);
    expect(await sessionOf(three, history([{ a: { b: 2, c: 1 } }, { text: 'x', type: 'text' }]))).not.toBe(
      id,
    );
  });

  it('comes from the final body', async () => {
    const set = await stage({ ...withHeader, model: { patch: { messages: [user('fixed')] } } });
    const first = await sessionOf(set, [user('one')]);
    expect(await sessionOf(set, [user('two')])).toBe(first);
  });

  it('is not disturbed by a probe', async () => {
    const set = await stage({ ...withHeader, upstream: { backoff: 'PT1M', probe_interval: 'PT0.05S' } });
    set.a.next((_r, answer) => answer.error(503));
    await set.chat().end();
    await set.gateway.logged('back in the pool');
    const probe = set.a.probes[0]?.header(NAME);
    // Had the probe been remembered, a longer history that begins with it would get its id.
    const history = [user('2+2=?'), assistant('4'), user('and?')];
    set.a.onProbe = null;
    const id = await sessionOf(set, history);
    expect(id).toMatch(/^[0-9a-f]{64}$/);
    expect(id).not.toBe(probe);
  });
});
