import { describe, expect, it } from 'vitest';
import { stage, type StageOptions } from '../support/stage.js';

const on: StageOptions = { provider: { reasoning_field: 'reasoning_content' } };

/** The bytes of `messages` that reach the upstream. */
async function backfilled(messages: string, options: StageOptions = on): Promise<string> {
  const { a, gateway } = await stage(options);
  expect((await gateway.send({ body: `{"model":"m","messages":${messages}}` }).end()).status).toBe(200);
  return /"messages":(.*)\}$/s.exec(a.last.text)?.[1] ?? '';
}

describe('reasoning backfill', () => {
  it.each([
    [
      'from reasoning',
      '[{"role":"assistant","content":"x","reasoning":"why\\u00e9"}]',
      [{ role: 'assistant', content: 'x', reasoning: 'whyé', reasoning_content: 'whyé' }],
    ],
    [
      'from reasoning_details, joined',
      '[{"role":"assistant","reasoning_details":[{"text":"a"},{"type":"reasoning.text","text":"b"},{"type":"reasoning.encrypted","text":"no"},{"type":"reasoning.summary","text":"no"},{"text":5},{"text":"c"}]}]',
      [{ role: 'assistant', reasoning_details: expect.any(Array), reasoning_content: 'a\nb\nc' }],
    ],
    [
      'from details where reasoning is empty',
      '[{"role":"assistant","reasoning":"","reasoning_details":[{"text":"a"}]}]',
      [{ role: 'assistant', reasoning: '', reasoning_details: expect.any(Array), reasoning_content: 'a' }],
    ],
    [
      'in the place of an empty one',
      '[{"role":"assistant","reasoning_content":"","reasoning":"r"}]',
      [{ role: 'assistant', reasoning: 'r', reasoning_content: 'r' }],
    ],
    [
      'in the place of null',
      '[{"role":"assistant","reasoning_content":null,"reasoning":"r"}]',
      [{ role: 'assistant', reasoning: 'r', reasoning_content: 'r' }],
    ],
  ])('%s', async (_what, messages, expected) => {
    expect(JSON.parse(await backfilled(messages))).toEqual(expected);
  });

  it.each([
    ['a message that has one', '[{"role":"assistant","reasoning_content":"mine","reasoning":"r"}]'],
    [
      'other roles',
      '[{"role":"user","reasoning":"r"},{"role":"system","reasoning":"r"},{"role":"tool","reasoning":"r"}]',
    ],
    ['nothing to take it from', '[{"role":"assistant","content":"x","n":1.0}]'],
    ['reasoning that is no text', '[{"role":"assistant","reasoning":5}]'],
    ['details that are none', '[{"role":"assistant","reasoning_details":"x"}]'],
    ['messages that are none', '[1,null,"x",[]]'],
  ])('leaves alone: %s', async (_what, messages) => {
    expect(await backfilled(messages)).toBe(messages);
  });

  it('is off by default', async () => {
    const messages = '[{"role":"assistant","reasoning":"r"}]';
    expect(await backfilled(messages, {})).toBe(messages);
  });

  it('leaves the bytes of its neighbours alone', async () => {
    const other = '{"role":"user","content":"\\u00e9\\ud800","n":1.0, "n":12345678901234567890}';
    const text = await backfilled(`[ ${other} , {"role":"assistant","k":1e5,"reasoning":"r"},${other}]`);
    expect(text).toBe(
      `[ ${other} , {"role":"assistant","k":1e5,"reasoning":"r","reasoning_content":"r"},${other}]`,
    );
  });

  it('gives "" only where reasoning_empty_ok says so', async () => {
    const empty: StageOptions = { provider: { reasoning_field: 'thoughts', reasoning_empty_ok: true } };
    expect(
      JSON.parse(
        await backfilled('[{"role":"assistant","content":"x"},{"role":"user","content":"y"}]', empty),
      ),
    ).toEqual([
      { role: 'assistant', content: 'x', thoughts: '' },
      { role: 'user', content: 'y' },
    ]);
  });

  it('works on the messages of a patch', async () => {
    const { a, chat } = await stage({
      ...on,
      model: { patch: { messages: [{ role: 'assistant', reasoning: 'p' }] } },
    });
    await chat().end();
    expect(a.last.json['messages']).toEqual([{ role: 'assistant', reasoning: 'p', reasoning_content: 'p' }]);
  });

  it('never leaks into an attempt at a provider without it', async () => {
    const { a, b, gateway } = await stage({
      upstreams: 2,
      provider: (i) => (i === 0 ? { reasoning_field: 'reasoning_content' } : {}),
    });
    a.next((_r, answer) => answer.error(500));
    const messages = '[{"role":"assistant","reasoning":"r"}]';
    await gateway.send({ body: `{"model":"m","messages":${messages}}` }).end();
    expect(a.last.text).toContain('reasoning_content');
    expect(b.last.text).toBe(`{"model":"real-b","messages":${messages}}`);
  });
});
