import { describe, expect, it } from 'vitest';
import { completion, delta, DONE, event, finish } from '../support/answers.js';
import type { RawAnswer } from '../support/raw-client.js';
import { stage, type Stage, type StageOptions } from '../support/stage.js';
import { gate, waitFor } from '../support/wait-for.js';

const attached: StageOptions = {
  upstreams: 2,
  upstream: { max_concurrency: 1 },
  model: { affinity: 'session' },
};

/** The n-th turn of a conversation: its first question is turn 0. */
function turn(n: number, name = 'x'): { messages: object[] } {
  const messages = Array.from({ length: 2 * n + 1 }, (_, i) =>
    i % 2 === 0
      ? { role: 'user', content: `${name} question ${i}` }
      : { role: 'assistant', content: `${name} answer ${i}` },
  );
  return { messages };
}

const told = (answer: RawAnswer): [string | undefined, string | undefined] => [
  answer.header('x-llm-proxy-upstream'),
  answer.header('x-llm-proxy-affinity'),
];

/** Does this while somebody else holds `a`. */
async function whileBusy<T>(set: Stage, work: () => Promise<T>): Promise<T> {
  const busy = gate();
  set.a.next(async (_r, answer) => {
    await busy.opened;
    await answer.json(200, completion());
  });
  const count = set.a.chats.length;
  const other = set.chat({ messages: [{ role: 'user', content: `somebody else ${count}` }] });
  await set.a.chat(count);
  const result = await work();
  busy.open();
  await other.end();
  return result;
}

const outcomes = async (set: Stage): Promise<Record<string, number>> => {
  const found = (await set.gateway.metrics()).find('llm_proxy_affinity_total', { model: 'm' });
  return Object.fromEntries(found.map(({ labels, value }) => [labels['outcome'], value]));
};

describe('affinity: session', () => {
  it('a conversation stays where it was served, although the first upstream is free again', async () => {
    const set = await stage(attached);
    expect(told(await whileBusy(set, () => set.chat(turn(0)).end()))).toEqual(['b', 'new']);
    expect(told(await set.chat(turn(1)).end())).toEqual(['b', 'hit']);
    expect(told(await set.stream(turn(2)).end())).toEqual(['b', 'hit']);
    expect(told(await set.chat(turn(0, 'y')).end())).toEqual(['a', 'new']);
    // The other request was new as well.
    expect(await outcomes(set)).toEqual({ new: 3, hit: 2 });
  });

  it('moves where its upstream is busy, and stays there', async () => {
    const set = await stage(attached);
    expect(told(await set.chat(turn(0)).end())).toEqual(['a', 'new']);
    expect(told(await whileBusy(set, () => set.chat(turn(1)).end()))).toEqual(['b', 'moved']);
    expect(told(await set.chat(turn(2)).end())).toEqual(['b', 'hit']);
  });

  it('moves where its upstream fails or rests, and only a success moves it', async () => {
    const set = await stage({ ...attached, provider: { backoff: 'PT1M', probe_interval: 'PT0S' } });
    await set.chat(turn(0)).end();
    set.a.next((_r, answer) => answer.error(503));
    set.b.next((_r, answer) => answer.error(400));
    const refused = await set.chat(turn(1)).end();
    expect([refused.status, ...told(refused)]).toEqual([400, 'b', 'moved']);
    // It rests: the next turn moves at once.
    expect(told(await set.chat(turn(1)).end())).toEqual(['b', 'moved']);
    expect(told(await set.chat(turn(2)).end())).toEqual(['b', 'hit']);
  });

  it('a stream that broke moves nobody', async () => {
    const set = await stage(attached);
    set.a.next(async (_r, answer) => {
      await answer.sseHead();
      await answer.write(delta('half'));
      answer.reset();
    });
    await set.stream(turn(0)).end();
    expect(told(await whileBusy(set, () => set.chat(turn(0)).end()))).toEqual(['b', 'new']);
  });

  it('a continued stream lives where it ended', async () => {
    const set = await stage({
      ...attached,
      upstream: { prefill: true },
      model: { affinity: 'session', on_interrupt: 'continue' },
    });
    set.a.next(async (_r, answer) => {
      await answer.sseHead();
      await answer.write(delta('half'));
      answer.reset();
    });
    set.b.next((_r, answer) => answer.sse([delta(' and half'), finish(), DONE]));
    expect(told(await set.stream(turn(0)).end())).toEqual(['a', 'new']);
    expect(told(await set.chat(turn(1)).end())).toEqual(['b', 'hit']);
  });

  it('knows the key as well', async () => {
    const keys = ['sk-one-11111111', 'sk-two-22222222', 'sk-three-3333333'];
    const set = await stage({ ...attached, upstreams: 1, provider: { key: undefined, keys } });
    const usedKeys = () => set.a.chats.map((request) => request.header('authorization')?.split('-')[1]);
    await set.chat(turn(0, 'y')).end();
    expect(told(await set.chat(turn(0)).end())).toEqual(['a', 'new']);
    expect(told(await set.chat(turn(1)).end())).toEqual(['a', 'hit']);
    expect(told(await set.chat(turn(1, 'y')).end())).toEqual(['a', 'hit']);
    expect(usedKeys()).toEqual(['one', 'two', 'two', 'one']);
    // Its key is spent: the conversation moves to another one.
    set.a.next((_r, answer) => answer.error(429));
    expect(told(await set.chat(turn(2)).end())).toEqual(['a', 'moved']);
    expect(told(await set.chat(turn(3)).end())).toEqual(['a', 'hit']);
    expect(usedKeys().slice(4)).toEqual(['two', 'three', 'three']);
  });

  it('reorders inside a tier only', async () => {
    const set = await stage({
      ...attached,
      upstreams: 3,
      model: {
        affinity: 'session',
        upstreams: [
          { upstream: 'a', tier: 1 },
          { upstream: 'b', tier: 2 },
          { upstream: 'c', tier: 2 },
        ],
      },
    });
    set.a.next((_r, answer) => answer.error(503));
    set.b.next((_r, answer) => answer.error(503));
    expect(told(await set.chat(turn(0)).end())).toEqual(['c', 'new']);
    expect(told(await set.chat(turn(1)).end())).toEqual(['a', 'moved']);
    set.a.next((_r, answer) => answer.error(503));
    expect(told(await set.chat(turn(0)).end())).toEqual(['b', 'moved']);
  });

  it('other tools, another system prompt and another model are other conversations', async () => {
    const set = await stage({
      ...attached,
      file: () => ({
        models: [
          { name: 'm', upstreams: ['a', 'b'], affinity: 'session' },
          { name: 'n', upstreams: ['a', 'b'], affinity: 'session' },
        ],
      }),
    });
    await whileBusy(set, () => set.chat(turn(0)).end());
    expect(told(await set.chat({ ...turn(1), model: 'n' }).end())).toEqual(['a', 'new']);
    expect(told(await set.chat({ ...turn(1), tools: [{ type: 'function' }] }).end())).toEqual(['a', 'new']);
    const messages = [{ role: 'system', content: 'Be brief.' }, ...turn(1).messages];
    expect(told(await set.chat({ messages }).end())).toEqual(['a', 'new']);
    expect(told(await set.chat(turn(1)).end())).toEqual(['b', 'hit']);
  });

  it('is counted once for a request, by whose answer the client got', async () => {
    const set = await stage({
      ...attached,
      upstreams: 3,
      provider: { errors: 'classified' },
      upstream: (i) => ({ context_window: [8000, 4000, 16_000][i] }),
    });
    await set.chat(turn(0)).end();
    const tooLong = { error: { message: 'prompt is too long', code: 'context_length_exceeded' } };
    set.a.next((_r, answer) => answer.json(400, tooLong));
    expect(told(await set.chat(turn(1)).end())).toEqual(['c', 'moved']);
    set.c.next((_r, answer) => answer.json(400, tooLong));
    const refused = await set.chat(turn(2)).end();
    expect([refused.status, ...told(refused)]).toEqual([400, 'c', 'hit']);
    expect(await outcomes(set)).toEqual({ new: 1, moved: 1, hit: 1 });
  });

  it('a request without messages is new each time', async () => {
    const set = await stage(attached);
    for (let i = 0; i < 2; i++)
      expect(told(await set.chat({ messages: 'none' }).end())).toEqual(['a', 'new']);
  });

  it('is told to nobody where nothing is exposed, and is not there without the key', async () => {
    const hidden = await stage({ ...attached, server: { expose: 'none' } });
    expect(told(await hidden.chat(turn(0)).end())).toEqual([undefined, undefined]);
    expect(await outcomes(hidden)).toEqual({ new: 1 });
    const set = await stage({ ...attached, model: {} });
    await whileBusy(set, () => set.chat(turn(0)).end());
    expect(told(await set.chat(turn(1)).end())).toEqual(['a', undefined]);
    expect(await outcomes(set)).toEqual({});
  });
});

describe('affinity_wait, where there are tiers and rests', () => {
  const tiers = {
    affinity: 'session',
    affinity_wait: 'PT20S',
    upstreams: [
      { upstream: 'a', tier: 1 },
      { upstream: 'b', tier: 2 },
      { upstream: 'c', tier: 2 },
    ],
  };
  const resting = { backoff: 'PT10M', probe_interval: 'PT0S' };

  it('waits for an upstream of a worse tier while the better one rests, and not while it is free', async () => {
    const set = await stage({ ...attached, upstreams: 3, provider: resting, model: tiers });
    set.a.next((_r, answer) => answer.error(503, { 'retry-after': '300' }));
    set.b.next((_r, answer) => answer.error(503));
    // From here on `a` rests.
    expect(told(await set.chat(turn(0)).end())).toEqual(['c', 'new']);
    const busy = gate();
    set.c.next(async (_r, answer) => {
      await busy.opened;
      await answer.json(200, completion());
    });
    const first = set.chat(turn(1));
    await set.c.chat(1);
    const second = set.chat({ messages: [...turn(1).messages, { role: 'user', content: 'and?' }] });
    await waitFor(
      async () => (await set.gateway.metrics()).sum('llm_proxy_queue_depth', { model: 'm' }) === 1,
      'the second turn waits',
    );
    busy.open();
    await first.end();
    expect(told(await second.end())).toEqual(['c', 'hit']);
    expect(set.b.chats).toHaveLength(1);
  });

  it('takes no trial of a resting upstream while another one is healthy', async () => {
    const set = await stage({
      ...attached,
      provider: { backoff: { base: 'PT3S', cap: 'PT10M' }, recovery: 'half_open' },
      model: { affinity: 'session', affinity_wait: 'PT20S' },
    });
    expect(told(await set.chat(turn(0)).end())).toEqual(['a', 'new']);
    set.a.next((_r, answer) => answer.error(503));
    await set.chat(turn(0, 'y')).end();
    await waitFor(async () => {
      const cooling = (await set.gateway.metrics()).sum('llm_proxy_upstream_cooling_seconds', {
        upstream: 'a',
      });
      return cooling < 1.45;
    }, 'the time for trials has come');
    expect(told(await set.chat(turn(1)).end())).toEqual(['b', 'moved']);
  });
});

describe('llm_proxy_cached_tokens_total', () => {
  it.each<[string, object, number]>([
    ['OpenAI', { prompt_tokens: 9, prompt_tokens_details: { cached_tokens: 5 } }, 5],
    ['Anthropic', { input_tokens: 9, cache_read_input_tokens: 6 }, 6],
    ['DeepSeek', { prompt_tokens: 9, prompt_cache_hit_tokens: 7 }, 7],
    ['nobody', { prompt_tokens: 9, prompt_tokens_details: null }, 0],
    ['a liar', { prompt_tokens_details: { cached_tokens: -1 } }, 0],
  ])('counts what %s reports, in streams and whole answers', async (_name, usage, cached) => {
    const set = await stage();
    set.a.next(
      (_r, answer) => answer.json(200, completion('hello', {}, { usage })),
      (_r, answer) => answer.sse([delta('a'), event({ choices: [], usage }), DONE]),
    );
    await set.chat().end();
    await set.stream().end();
    const metrics = await set.gateway.metrics();
    expect(metrics.sum('llm_proxy_cached_tokens_total', { model: 'm', upstream: 'a' })).toBe(2 * cached);
  });
});
