import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { chunk, completion, delta, DONE, event, finish, usage } from '../support/answers.js';
import { stage, type Stage } from '../support/stage.js';
import { gate, waitFor } from '../support/wait-for.js';

/** Turns so seldom that no test meets it. */
const LONG = 'P360D';
const requests = (limit: number) => ({ quota: [{ requests: limit, per: LONG }] });
const tokens = (limit: number) => ({ quota: [{ tokens: limit, per: LONG }] });

async function left({ gateway }: Stage, scope: string, id: string): Promise<number | undefined> {
  return (await gateway.metrics()).find('llm_proxy_quota_remaining', { scope, id })[0]?.value;
}
async function estimated({ gateway }: Stage): Promise<number> {
  return (await gateway.metrics()).sum('llm_proxy_tokens_estimated_total');
}
const usageChunk = event({ id: 'c1', object: 'chat.completion.chunk', choices: [], usage });

describe('quotas of tokens', () => {
  it('count input and output as the provider says', async () => {
    const set = await stage({ upstream: tokens(20) });
    await set.chat().end();
    expect(await left(set, 'upstream', 'a')).toBe(8);
    await set.chat().end();
    expect((await set.chat().end()).status).toBe(429);
    expect(await left(set, 'upstream', 'a')).toBe(-4);
    expect(await estimated(set)).toBe(0);
  });

  it('reserve what a request may use: its bytes / 4 and max_tokens', async () => {
    const set = await stage({ upstream: tokens(100_000) });
    const hold = gate();
    set.a.always(async (_r, answer) => {
      await hold.opened;
      await answer.json(200, completion());
    });
    const body = JSON.stringify({ model: 'm', max_tokens: 500, messages: [] });
    const answers = [set.chat({}, { body }), set.chat({}, { body: '{"model":"m"}' })];
    await set.a.chat(1);
    const reserved = Math.ceil(body.length / 4) + 500 + Math.ceil('{"model":"m"}'.length / 4) + 1000;
    expect(await left(set, 'upstream', 'a')).toBe(100_000 - reserved);
    hold.open();
    for (const answer of answers) await answer.end();
    expect(await left(set, 'upstream', 'a')).toBe(100_000 - 24);
  });

  it('ask streams for their usage, and hide the answer from a client that did not ask', async () => {
    const set = await stage({ upstream: tokens(1000) });
    const rest = [delta('a'), delta('b'), finish(), DONE];
    set.a.always((_r, answer) => answer.sse([...rest.slice(0, 3), usageChunk, DONE]));
    const answer = await set.stream({ stream_options: { include_obfuscation: false } }).end();
    expect(answer.text).toBe(rest.join(''));
    expect(set.a.last.json['stream_options']).toEqual({ include_obfuscation: false, include_usage: true });
    expect(await left(set, 'upstream', 'a')).toBe(988);
    expect((await set.gateway.metrics()).sum('llm_proxy_tokens_total')).toBe(12);
    expect(await estimated(set)).toBe(0);
  });

  it('show the usage chunk to a client that asked for it', async () => {
    const set = await stage({ upstream: tokens(1000) });
    set.a.always((_r, answer) => answer.sse([delta('a'), usageChunk, DONE]));
    const answer = await set.stream({ stream_options: { include_usage: true } }).end();
    expect(answer.text).toBe(delta('a') + usageChunk + DONE);
    expect(await left(set, 'upstream', 'a')).toBe(988);
  });

  it('never withhold a chunk with choices, and read running totals', async () => {
    const set = await stage({ upstream: tokens(1000) });
    const running = [1, 2, 3].map((n) =>
      event(chunk({ delta: { content: 'x' } }, { usage: { prompt_tokens: 10, completion_tokens: n } })),
    );
    set.a.always((_r, answer) => answer.sse([...running, DONE]));
    expect((await set.stream().end()).text).toBe(running.join('') + DONE);
    expect(await left(set, 'upstream', 'a')).toBe(987);
  });

  it('do not ask where the provider refuses it, nor where only requests are counted', async () => {
    for (const options of [
      { provider: { usage: 'off' }, upstream: tokens(10_000) },
      { upstream: requests(10) },
    ]) {
      const set = await stage(options);
      const answer = await set.stream().end();
      expect(answer.text).toContain('[DONE]');
      expect(set.a.last.json).not.toHaveProperty('stream_options');
    }
  });

  it('do not ask where an answer is no stream', async () => {
    const set = await stage({ upstream: tokens(1000) });
    await set.chat({ stream_options: { x: 1 } }).end();
    expect(set.a.last.json['stream_options']).toEqual({ x: 1 });
  });

  it('estimate where no usage comes: bytes of request and answer / 4', async () => {
    const set = await stage({ upstream: tokens(10_000), provider: { usage: 'off' } });
    const stream = delta('abc') + finish() + DONE;
    set.a.always((_r, answer) => answer.sse([stream]));
    await set.stream().end();
    const tokensUsed = Math.ceil((set.a.last.body.length + stream.length) / 4);
    expect(await left(set, 'upstream', 'a')).toBe(10_000 - tokensUsed);
    expect(await estimated(set)).toBe(tokensUsed);
  });

  it('estimate a stream that its client left', async () => {
    const set = await stage({ upstream: tokens(10_000) });
    set.a.always(async (request, answer) => {
      await answer.sseHead();
      await answer.write(delta('abc'));
      await request.closed;
    });
    const answer = set.stream();
    await answer.saw('abc');
    answer.leave();
    const tokensUsed = Math.ceil((set.a.last.body.length + delta('abc').length) / 4);
    await waitFor(async () => (await left(set, 'upstream', 'a')) === 10_000 - tokensUsed, 'it was booked');
    expect(await estimated(set)).toBe(tokensUsed);
  });

  it('take nothing for an answer by which the provider refused', async () => {
    const set = await stage({ upstreams: 2, upstream: (i) => (i === 0 ? tokens(1000) : {}) });
    set.a.next(
      (_r, answer) => answer.error(503),
      (_r, answer) => answer.error(404),
    );
    await set.chat().end();
    expect((await set.chat().end()).status).toBe(404);
    expect(await left(set, 'upstream', 'a')).toBe(1000);
  });

  it.each([true, false])('read a coded answer, stream: %s', async (stream) => {
    const set = await stage({ upstream: tokens(1000), provider: { usage: 'off' } });
    const text = stream ? delta('a') + usageChunk + DONE : JSON.stringify(completion());
    const type = stream ? 'text/event-stream' : 'application/json';
    set.a.always((_r, answer) =>
      answer.send(200, gzipSync(text), { 'content-type': type, 'content-encoding': 'gzip' }),
    );
    const answer = await set.chat({ stream }).end();
    expect([answer.text, answer.header('content-encoding')]).toEqual([text, undefined]);
    expect(await left(set, 'upstream', 'a')).toBe(988);
  });

  it('join a stream for a client that wanted none, usage included', async () => {
    const set = await stage({ upstream: tokens(1000), model: { patch: { stream: true } } });
    set.a.always((_r, answer) => answer.sse([delta('a'), finish(), usageChunk, DONE]));
    const answer = await set.chat().end();
    expect(answer.json).toMatchObject({
      usage: { prompt_tokens: 7 },
      choices: [{ message: { content: 'a' } }],
    });
    expect(set.a.last.json['stream_options']).toEqual({ include_usage: true });
    expect(await left(set, 'upstream', 'a')).toBe(988);
  });

  it('work beside think tags', async () => {
    const set = await stage({ upstream: tokens(1000), provider: { think_tags: 'split' } });
    set.a.always((_r, answer) => answer.sse([delta('<think>x</think>y'), usageChunk, DONE]));
    const answer = await set.stream().end();
    expect(answer.text).not.toContain('prompt_tokens');
    expect(answer.text).toContain('"reasoning_content":"x"');
    expect(answer.text.endsWith(DONE)).toBe(true);
    expect(await left(set, 'upstream', 'a')).toBe(988);
  });
});
