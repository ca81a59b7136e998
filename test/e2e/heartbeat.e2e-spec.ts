import { describe, expect, it } from 'vitest';
import { gzipSync } from 'node:zlib';
import { completion, delta, DONE, finish } from '../support/answers.js';
import { holdAnswers, queued, say } from '../support/held-answers.js';
import type { ScriptedAnswer } from '../support/scripted-answer.js';
import { stage, type Stage } from '../support/stage.js';
import { gate, waitFor } from '../support/wait-for.js';

/** Once for each answer, before it. A beat may come behind it while the body is read. */
const WHO_THEN_DATA =
  /^(: waiting\n\n)+: llm-proxy upstream=a provider=pa attempts=1 queue_ms=0\n\n(: waiting\n\n)*data: /;
const SOON = { after: 'PT0.03S', every: 'PT0.03S' };

function beating(options: Parameters<typeof stage>[0] = {}): Promise<Stage> {
  return stage({ ...options, model: { heartbeat: SOON, ...options.model } });
}

/** The answer of the provider comes when the stream has been opened by a comment. */
async function answeredLate(set: Stage, answer: (to: ScriptedAnswer) => Promise<void>) {
  const hold = gate();
  set.a.next(async (_request, to) => {
    await hold.opened;
    await answer(to);
  });
  const stream = await set.stream().saw(': waiting\n\n');
  hold.open();
  return await stream.end();
}

describe('a heartbeat', () => {
  it('opens the stream with comments until the first event, and says then who answers', async () => {
    const set = await beating();
    const stream = await answeredLate(set, (to) => to.sse([delta('hi'), finish(), DONE]));
    expect([stream.status, stream.ending]).toEqual([200, 'complete']);
    expect(stream.header('content-type')).toBe('text/event-stream; charset=utf-8');
    expect(stream.headerLines.map(([name]) => name).filter((name) => name.startsWith('x-'))).toEqual([
      'x-accel-buffering',
      'x-llm-proxy-model',
      'x-request-id',
    ]);
    expect(stream.text).toMatch(WHO_THEN_DATA);
    expect(stream.events.at(-1)?.data).toBe('[DONE]');
  });

  it('is not there where the answer comes in time, nor for who wants no stream', async () => {
    const set = await stage({ model: { heartbeat: { after: 'PT20S' } } });
    const stream = await set.stream().end();
    expect(stream.text).not.toContain(':  ');
    expect(stream.header('x-llm-proxy-upstream')).toBe('a');
    const other = await beating();
    const hold = gate();
    other.a.next(async (_request, answer) => {
      await hold.opened;
      await answer.json(200, completion());
    });
    const whole = other.chat();
    const since = performance.now();
    await waitFor(() => performance.now() - since > 100, 'several beats passed');
    expect(whole.status).toBe(0);
    hold.open();
    expect((await whole.end()).json).toEqual(completion());
  });

  it('says where in the queue a stream stands', async () => {
    const set = await beating({ upstream: { max_concurrency: 1 }, model: { heartbeat: SOON, queue: {} } });
    const held = holdAnswers(set.a);
    const first = set.stream(say('first'));
    await waitFor(() => held.order.length === 1, 'it runs');
    const second = set.stream(say('second'));
    await queued(set, 1);
    const third = set.stream(say('third'));
    await second.saw(': queued position=1\n\n');
    await third.saw(': queued position=2\n\n');
    await held.next();
    await second.saw(': waiting\n\n');
    await third.saw(': queued position=1\n\n');
    held.release();
    for (const stream of [first, second, third]) {
      await stream.end();
      expect([stream.ending, stream.events.at(-1)?.data]).toEqual(['complete', '[DONE]']);
    }
    expect(third.text).toMatch(/queue_ms=[1-9]/);
  });

  it('goes on while the answer says nothing, never inside an event', async () => {
    const set = await beating();
    const hold = gate();
    const role = delta({ role: 'assistant' });
    set.a.next(async (_request, to) => {
      await to.sseHead();
      await to.write(role);
      await hold.opened;
      await to.write('data: {"cut');
      await to.write('":1}\n\n');
      await to.write(delta('hi') + DONE);
      await to.end();
    });
    const stream = await set.stream().saw(': waiting\n\n');
    expect(stream.text.startsWith(role)).toBe(true);
    hold.open();
    await stream.end();
    expect(stream.text.replaceAll(': waiting\n\n', '')).toBe(
      `${role}data: {"cut":1}\n\n${delta('hi')}${DONE}`,
    );
  });

  it('lets a failed attempt fail over as ever', async () => {
    const set = await beating({ upstreams: 2 });
    const stream = await answeredLate(set, (to) => to.error(500));
    expect(stream.text).toContain(': llm-proxy upstream=b provider=pb attempts=2 queue_ms=0\n\n');
    expect(stream.events.at(-1)?.data).toBe('[DONE]');
  });
});

describe('after the stream was opened', () => {
  it('an error of ours is an event with its status, and a clean end without [DONE]', async () => {
    const set = await beating();
    const stream = await answeredLate(set, (to) => to.error(503));
    expect([stream.status, stream.ending]).toEqual([200, 'complete']);
    expect(stream.events.at(-1)?.json).toMatchObject({
      error: { status: 503, code: 'all_upstreams_failed', message: 'all upstreams failed' },
    });
    expect(stream.text).not.toContain('[DONE]');
    expect((await set.gateway.metrics()).sum('llm_proxy_rejected_total', { reason: 'failed' })).toBe(1);
  });

  it("a provider's refusal is such an event in its own words", async () => {
    const set = await beating();
    const stream = await answeredLate(set, (to) => to.error(422));
    expect(stream.events.at(-1)?.json).toEqual({
      error: {
        message: 'the provider says no',
        type: 'provider_error',
        param: null,
        code: 'p',
        status: 422,
      },
    });
    expect([stream.ending, stream.text.includes('[DONE]')]).toEqual(['complete', false]);
    expect(stream.text).toMatch(WHO_THEN_DATA);
    expect((await set.gateway.metrics()).sum('llm_proxy_requests_total', { result: '4xx' })).toBe(1);
  });

  it('a JSON answer is one chunk and [DONE], decoded where it is coded', async () => {
    const set = await beating();
    const body = gzipSync(JSON.stringify(completion('hello')));
    const stream = await answeredLate(set, (to) =>
      to.send(200, body, { 'content-type': 'application/json', 'content-encoding': 'gzip' }),
    );
    const [chunk, end] = stream.events.slice(-2);
    expect(chunk?.json).toMatchObject({
      object: 'chat.completion.chunk',
      choices: [{ index: 0, delta: { role: 'assistant', content: 'hello' }, finish_reason: 'stop' }],
      usage: { total_tokens: 12 },
    });
    expect([end?.data, stream.ending]).toEqual(['[DONE]', 'complete']);
    expect(stream.text).toMatch(WHO_THEN_DATA);
  });

  it('a break is told as ever', async () => {
    const set = await beating();
    const stream = await answeredLate(set, async (to) => {
      await to.sseHead();
      await to.write(delta('half'));
      to.socket.resetAndDestroy();
    });
    expect(stream.events.at(-1)?.json).toMatchObject({ error: { code: 'upstream_stream_interrupted' } });
    expect(stream.text).not.toContain('[DONE]');
  });

  it('a client that leaves frees everything', async () => {
    const set = await beating({ upstream: { max_concurrency: 1 }, model: { heartbeat: SOON, queue: {} } });
    const held = holdAnswers(set.a);
    const first = set.chat(say('first'));
    await waitFor(() => held.order.length === 1, 'it runs');
    const gone = await set.stream(say('gone')).saw(': queued position=1');
    gone.leave();
    await queued(set, 0);
    held.release();
    await first.end();
    expect(held.order).toEqual(['first']);
  });
});
