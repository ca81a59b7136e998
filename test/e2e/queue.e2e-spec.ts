import { describe, expect, it, onTestFinished } from 'vitest';
import { completion } from '../support/answers.js';
import { bearer, consumer } from '../support/consumers.js';
import { holdAnswers, queued, say } from '../support/held-answers.js';
import { RawConnection } from '../support/raw-client.js';
import { ServiceProcess } from '../support/process.js';
import { ScriptedUpstream } from '../support/scripted-upstream.js';
import { stage, type Stage, type StageOptions } from '../support/stage.js';
import { waitFor } from '../support/wait-for.js';

const QUEUE = { size: 300, wait: 'PT20S' };

function line(queue: object = QUEUE, options: StageOptions = {}): Promise<Stage> {
  return stage({ upstream: { max_concurrency: 1 }, ...options, model: { queue, ...options.model } });
}

/** The only slot is held by a request; whoever comes now waits. */
async function occupied(set: Stage) {
  const held = holdAnswers(set.a);
  const first = set.chat(say('first'));
  await waitFor(() => held.order.length === 1, 'the first runs');
  return { held, first };
}

/** Sends requests one after the other, each once the one before stands in the queue. */
async function lineUp(set: Stage, names: readonly string[], header = (_name: string) => ({})) {
  const answers = [];
  for (const [i, name] of names.entries()) {
    answers.push(set.chat(say(name), { headers: header(name) }));
    await queued(set, i + 1);
  }
  return answers;
}

describe('a queue', () => {
  it('hands the slot on in order of arrival, to two hundred who wait, and keeps it busy', async () => {
    const set = await line();
    const { held, first } = await occupied(set);
    const names = Array.from({ length: 200 }, (_, i) => `n${i}`);
    const answers = [];
    // On one connection each; the order of arrival is that of the log.
    for (const name of names) {
      answers.push(set.chat(say(name)));
      await set.gateway.logged(`waits for a slot (position ${answers.length})`);
    }
    await queued(set, 200);
    held.release();
    for (const answer of [first, ...answers]) expect((await answer.end()).status).toBe(200);
    expect(held.order).toEqual(['first', ...names]);
    expect(set.a.mostAtOnce).toBe(1);
    const metrics = await set.gateway.metrics();
    expect(metrics.sum('llm_proxy_queue_wait_seconds_count', { model: 'm', outcome: 'served' })).toBe(200);
    expect(metrics.sum('llm_proxy_slot_hold_seconds_count', { upstream: 'a' })).toBe(201);
    // Each hand-over was observed, so none was forgotten; how long they took is for the benchmark.
    expect(metrics.sum('llm_proxy_slot_idle_seconds_count', { upstream: 'a' })).toBe(200);
    expect(metrics.sum('llm_proxy_queue_depth', { model: 'm' })).toBe(0);
  });

  it('says how long a request waited, on every answer of a model that has one', async () => {
    const set = await line({ size: 1, wait: 'PT20S' });
    const { held, first } = await occupied(set);
    const [waited] = await lineUp(set, ['n1']);
    const refused = await set.chat().end();
    expect(refused.header('x-llm-proxy-queue-ms')).toBe('0');
    held.release();
    expect((await first.end()).header('x-llm-proxy-queue-ms')).toBe('0');
    expect(Number((await waited?.end())?.header('x-llm-proxy-queue-ms'))).toBeGreaterThan(0);
    set.a.next((_request, answer) => answer.error(422));
    expect((await set.chat().end()).header('x-llm-proxy-queue-ms')).toBe('0');
  });

  it('is none where the model has none, not even in headers', async () => {
    const set = await stage({ upstream: { max_concurrency: 1 } });
    const { held, first } = await occupied(set);
    const refused = await set.chat().end();
    expect(refused.json).toMatchObject({ error: { code: 'all_upstreams_busy' } });
    expect(refused.header('x-llm-proxy-queue-ms')).toBeUndefined();
    held.release();
    expect((await first.end()).header('x-llm-proxy-queue-ms')).toBeUndefined();
    expect((await set.gateway.metrics()).find('llm_proxy_slot_hold_seconds_count')).toEqual([]);
  });

  it('refuses at once when it is full, with the time that is to be expected', async () => {
    const set = await line({ size: 2, wait: 'PT20S' });
    const { held, first } = await occupied(set);
    const waiting = await lineUp(set, ['n1', 'n2']);
    const refused = await set.chat().end();
    expect([refused.status, refused.header('retry-after')]).toEqual([503, '1']);
    expect(refused.json).toMatchObject({
      error: { message: 'all upstreams busy', code: 'queue_full', attempts: [] },
    });
    held.release();
    for (const answer of [first, ...waiting]) expect((await answer.end()).status).toBe(200);
    const rejected = { model: 'm', reason: 'queue_full' };
    expect((await set.gateway.metrics()).sum('llm_proxy_rejected_total', rejected)).toBe(1);
  });

  it('counts the bytes of those who wait', async () => {
    const set = await line({ max_bytes: '64KiB' });
    const { held, first } = await occupied(set);
    const large = 'x'.repeat(40_000);
    const [waiting] = await lineUp(set, [large]);
    expect((await set.chat(say(large)).end()).json).toMatchObject({ error: { code: 'queue_full' } });
    held.release();
    for (const answer of [first, waiting]) expect((await answer?.end())?.status).toBe(200);
  });

  it('gives up when the time is over; the provider sees nothing of it', async () => {
    const set = await line({ wait: 'PT0.05S' });
    const { held, first } = await occupied(set);
    const late = await set.chat(say('late')).end();
    expect(late.status).toBe(503);
    expect(late.json).toMatchObject({ error: { message: 'all upstreams busy', code: 'queue_timeout' } });
    expect(Number(late.header('x-llm-proxy-queue-ms'))).toBeGreaterThanOrEqual(50);
    expect(late.header('retry-after')).toBe('1');
    await set.gateway.logged('503 all upstreams busy (a=1/1)');
    held.release();
    await first.end();
    expect(held.order).toEqual(['first']);
    const metrics = await set.gateway.metrics();
    expect(metrics.sum('llm_proxy_queue_wait_seconds_count', { outcome: 'timeout' })).toBe(1);
    expect(metrics.sum('llm_proxy_rejected_total', { reason: 'queue_timeout' })).toBe(1);
  });

  it('forgets a client that leaves', async () => {
    const set = await line({ size: 1 });
    const { held, first } = await occupied(set);
    const [gone] = await lineUp(set, ['gone']);
    gone?.leave();
    await queued(set, 0);
    const [stays] = await lineUp(set, ['stays']);
    held.release();
    for (const answer of [first, stays]) expect((await answer?.end())?.status).toBe(200);
    expect(held.order).toEqual(['first', 'stays']);
    const left = { model: 'm', outcome: 'left' };
    expect((await set.gateway.metrics()).sum('llm_proxy_queue_wait_seconds_count', left)).toBe(1);
  });

  it('takes a failed request back with its place', async () => {
    const set = await line(QUEUE, { upstreams: 2 });
    const [a, b] = [holdAnswers(set.a), holdAnswers(set.b)];
    const holders = [set.chat(say('at a')), set.chat(say('at b'))];
    await waitFor(() => a.order.length + b.order.length === 2, 'both are busy');
    const [first, second] = await lineUp(set, ['first', 'second']);
    set.a.next((_request, answer) => answer.error(500));
    await a.next();
    // It failed at a, and is the first again of those who wait for b.
    await waitFor(() => a.order.includes('second'), 'the second got the slot that it left');
    await queued(set, 1);
    const [third] = [set.chat(say('third'))];
    await queued(set, 2);
    await b.next();
    await waitFor(() => b.order.length === 2, 'somebody got the slot of b');
    expect(b.order).toEqual(['at b', 'first']);
    a.release();
    b.release();
    for (const answer of [...holders, second, third]) expect((await answer?.end())?.status).toBe(200);
    const answer = await first?.end();
    expect([answer?.status, answer?.header('x-llm-proxy-trail')]).toEqual([200, 'a=500,b=200']);
  });

  it('waits for an upstream that rests, when it is back in time', async () => {
    const set = await line(QUEUE, { upstream: { backoff: 'PT1M', probe_interval: 'PT0S' } });
    set.a.next((_request, answer) => answer.error(503));
    expect((await set.chat().end()).json).toMatchObject({ error: { code: 'all_upstreams_failed' } });
    const answer = await set.chat().end();
    expect(answer.status).toBe(200);
    expect(Number(answer.header('x-llm-proxy-queue-ms'))).toBeGreaterThan(100);
  });

  it('does not wait for one that is back too late', async () => {
    const set = await line({ wait: 'PT2S' }, { upstream: { backoff: 'PT1M', probe_interval: 'PT0S' } });
    set.a.next((_request, answer) => answer.error(503, { 'retry-after': '30' }));
    await set.chat().end();
    expect((await set.chat().end()).json).toMatchObject({ error: { code: 'all_upstreams_cooling' } });
  });

  it('begins the time of a request with its claim', async () => {
    const set = await line(QUEUE, { upstream: { max_concurrency: 1, request_timeout: 'PT0.4S' } });
    const { held } = await occupied(set);
    const [waiting] = await lineUp(set, ['n1']);
    // The first is cut at its limit; the one that waited as long has all of its own.
    await waitFor(() => held.order.length === 2, 'the second got the slot');
    held.release();
    expect((await waiting?.end())?.status).toBe(200);
  });

  it('lets no upstream rest for an attempt that the wait left too little of the deadline', async () => {
    const rests = { max_concurrency: 1, backoff: 'PT1H', probe_interval: 'PT0S' };
    const set = await line(QUEUE, { upstream: rests, model: { deadline: 'PT1S' } });
    const { held, first } = await occupied(set);
    const [waiting] = await lineUp(set, ['n1']);
    set.a.next(() => {});
    held.release();
    expect((await first.end()).status).toBe(200);
    const cut = await waiting?.end();
    expect([cut?.status, cut?.header('x-llm-proxy-trail')]).toEqual([503, 'a=net_err']);
    expect((await set.gateway.metrics()).sum('llm_proxy_upstream_cooling_seconds', { upstream: 'a' })).toBe(
      0,
    );
  });

  it('says how long a request waited also with an error that was kept for it', async () => {
    const set = await stage({
      upstreams: 2,
      provider: { errors: 'classified' },
      upstream: (i) => ({ context_window: i + 1, ...(i === 1 ? { max_concurrency: 1 } : {}) }),
      model: { queue: QUEUE },
    });
    const held = holdAnswers(set.b);
    const tooLong = { error: { message: 'too long', code: 'context_length_exceeded' } };
    set.a.always((_request, answer) => answer.json(400, tooLong));
    const first = set.chat(say('first'));
    await waitFor(() => held.order.length === 1, 'the first runs at the larger one');
    const [waiting] = await lineUp(set, ['n1']);
    set.b.next((_request, answer) => answer.json(400, tooLong));
    held.release();
    await first.end();
    const answer = await waiting?.end();
    expect(answer?.status).toBe(400);
    expect(Number(answer?.header('x-llm-proxy-queue-ms'))).toBeGreaterThan(0);
  });

  it('sends all who wait away when the service ends', async () => {
    const up = await ScriptedUpstream.start();
    onTestFinished(() => up.stop());
    const held = holdAnswers(up);
    const service = await ServiceProcess.listening({
      environment: { LOG_LEVEL: 'debug' },
      config: {
        server: { host: '127.0.0.1', port: 0 },
        providers: [{ id: 'p', url: up.url, max_concurrency: 1 }],
        upstreams: [{ id: 'a', provider: 'p', model: 'real' }],
        models: [{ name: 'm', upstreams: ['a'], queue: QUEUE }],
      },
    });
    const ask = (text: string) => service.send({ body: { model: 'm', ...say(text) } });
    const first = ask('first');
    await waitFor(() => held.order.length === 1, 'the first runs');
    const waiting = ['n1', 'n2'].map(ask);
    await waitFor(() => service.lines.some(({ msg }) => msg.includes('(position 2)')), 'both wait');
    service.kill('SIGTERM');
    for (const answer of waiting) {
      const { json, status } = await answer.end();
      expect([status, json['error']]).toEqual([503, expect.objectContaining({ code: 'shutting_down' })]);
    }
    expect(first.status).toBe(0);
    held.release();
    expect((await first.end()).status).toBe(200);
    expect(await service.exit()).toEqual({ code: 0, signal: null });
    expect(held.order).toEqual(['first']);
  });
});

describe('x-llm-proxy-priority', () => {
  it('lowers the priority of a request, and is ignored where it would raise it or is none', async () => {
    const set = await line();
    const { held } = await occupied(set);
    const asked: Record<string, string> = { low: '-5', high: '7', none: 'x', too: '-1001', plain: '' };
    await lineUp(set, Object.keys(asked), (name) => ({ 'x-llm-proxy-priority': asked[name] }));
    held.release();
    await waitFor(() => held.order.length === 6, 'all were served');
    expect(held.order).toEqual(['first', 'high', 'none', 'too', 'plain', 'low']);
    expect(set.a.requests.every((request) => request.header('x-llm-proxy-priority') === undefined)).toBe(
      true,
    );
  });

  it('lets a newcomer of a higher priority take the place of a lower one', async () => {
    const set = await line({ size: 2 });
    const { held, first } = await occupied(set);
    const low = { 'x-llm-proxy-priority': '-1' };
    const waiting = await lineUp(set, ['n1', 'n2'], () => low);
    const newcomer = set.chat(say('n3'));
    expect((await waiting[1]?.end())?.json).toMatchObject({ error: { code: 'queue_full' } });
    held.release();
    for (const answer of [first, waiting[0], newcomer]) expect((await answer?.end())?.status).toBe(200);
    expect(held.order).toEqual(['first', 'n3', 'n1']);
  });

  it('is lifted by ageing, so that nobody starves', async () => {
    const set = await line({ ageing: 'PT0.1S' });
    const { held } = await occupied(set);
    const [low] = await lineUp(set, ['low'], () => ({ 'x-llm-proxy-priority': '-9' }));
    const since = performance.now();
    await waitFor(() => performance.now() - since > 120, 'it has waited long enough');
    const [high] = [set.chat(say('high'))];
    await queued(set, 2);
    held.release();
    for (const answer of [low, high]) expect((await answer?.end())?.status).toBe(200);
    expect(held.order).toEqual(['first', 'low', 'high']);
  });
});

describe('consumers', () => {
  /** Requests are named after their consumer: `red1`, `blue2`. */
  const byName = (name: string) => bearer(name.replace(/\d.*$/, ''));
  const together = (priorities: Readonly<Record<string, number>>) =>
    line(QUEUE, {
      file: () => ({
        consumers: Object.entries(priorities).map(([id, priority]) => consumer(id, { priority })),
      }),
    });

  it('take turns inside a priority, the higher one first, each in order of arrival', async () => {
    const set = await together({ red: 0, blue: 0, green: 0, boss: 10 });
    const held = holdAnswers(set.a);
    const first = set.chat(say('first'), { headers: bearer('green') });
    await waitFor(() => held.order.length === 1, 'the first runs');
    const names = ['red1', 'red2', 'red3', 'blue1', 'blue2', 'green1', 'boss1', 'boss2'];
    const answers = await lineUp(set, names, byName);
    held.release();
    for (const answer of [first, ...answers]) expect((await answer.end()).status).toBe(200);
    expect(held.order.join(' ')).toBe('first boss1 boss2 red1 blue1 green1 red2 blue2 red3');
  });

  it('may lower the priority of a request, not raise it', async () => {
    const set = await together({ boss: 10, red: 5 });
    const held = holdAnswers(set.a);
    const first = set.chat(say('first'), { headers: bearer('red') });
    await waitFor(() => held.order.length === 1, 'the first runs');
    const asked: Readonly<Record<string, string>> = { red1: '1000', boss1: '4', boss2: '-1000' };
    const answers = await lineUp(set, ['boss2', 'boss1', 'red1'], (name) => ({
      ...byName(name),
      'x-llm-proxy-priority': asked[name],
    }));
    held.release();
    for (const answer of [first, ...answers]) expect((await answer.end()).status).toBe(200);
    expect(held.order).toEqual(['first', 'red1', 'boss1', 'boss2']);
  });
});

describe('an entry with spill_after', () => {
  const spilling = (spill: object, queue: object = QUEUE) =>
    stage({
      upstreams: 2,
      upstream: (i) => (i === 0 ? { max_concurrency: 1 } : {}),
      model: { queue, upstreams: ['a', { upstream: 'b', ...spill }] },
    });
  const spills = async (set: Stage, reason: string) =>
    (await set.gateway.metrics()).sum('llm_proxy_spill_total', { model: 'm', upstream: 'b', reason });

  it('is used after that wait', async () => {
    const set = await spilling({ spill_after: 'PT0.1S' });
    const { held, first } = await occupied(set);
    const answer = await set.chat().end();
    expect(answer.header('x-llm-proxy-upstream')).toBe('b');
    expect(Number(answer.header('x-llm-proxy-queue-ms'))).toBeGreaterThanOrEqual(100);
    expect(await spills(set, 'waited')).toBe(1);
    held.release();
    await first.end();
  });

  it('is used at once when all before it failed, or the queue is full', async () => {
    const set = await spilling({ spill_after: 'PT15S' }, { size: 1 });
    set.a.next((_request, answer) => answer.error(500));
    expect((await set.chat().end()).header('x-llm-proxy-upstream')).toBe('b');
    const { held, first } = await occupied(set);
    const [waiting] = await lineUp(set, ['n1']);
    expect((await set.chat().end()).header('x-llm-proxy-upstream')).toBe('b');
    expect([await spills(set, 'unavailable'), await spills(set, 'full')]).toEqual([1, 1]);
    held.release();
    for (const answer of [first, waiting])
      expect((await answer?.end())?.header('x-llm-proxy-upstream')).toBe('a');
  });

  it('is never used by a lower priority than it asks for', async () => {
    const set = await spilling({ spill_after: 'PT0S', spill_min_priority: 0 }, { wait: 'PT0.1S' });
    const { held, first } = await occupied(set);
    expect((await set.chat().end()).header('x-llm-proxy-upstream')).toBe('b');
    const batch = await set.chat({}, { headers: { 'x-llm-proxy-priority': '-1' } }).end();
    expect(batch.json).toMatchObject({ error: { code: 'queue_timeout' } });
    held.release();
    await first.end();
  });
});

describe('a client that pipelines', () => {
  it('waits once for each of its requests', async () => {
    const set = await line();
    const { held, first } = await occupied(set);
    const connection = new RawConnection(set.gateway.port);
    const answers = ['n1', 'n2'].map((name) => connection.send({ body: { model: 'm', ...say(name) } }));
    await queued(set, 2);
    held.release();
    for (const answer of [first, ...answers]) expect((await answer.end()).json).toEqual(completion());
    connection.close();
  });
});

describe('affinity_wait', () => {
  const turn = (text: string) => ({
    messages: [
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: 'hello' },
      { role: 'user', content: text },
    ],
  });
  const conversing = (wait: string, options: StageOptions = {}) =>
    stage({
      upstreams: 2,
      upstream: (i) => (i === 0 ? { max_concurrency: 1 } : {}),
      ...options,
      model: { affinity: 'session', affinity_wait: wait, ...options.model },
    });

  it('waits for the busy upstream of the conversation, without a queue, and is counted', async () => {
    const set = await conversing('PT20S');
    await set.chat({ messages: [{ role: 'user', content: 'hi' }] }).end();
    const held = holdAnswers(set.a);
    const other = set.chat(say('another conversation'));
    await waitFor(() => held.order.length === 1, 'a is busy');
    const waiting = set.chat(turn('and?'));
    await queued(set, 1);
    expect(set.b.requests).toEqual([]);
    held.release();
    for (const answer of [other, waiting])
      expect((await answer.end()).header('x-llm-proxy-upstream')).toBe('a');
    expect(waiting.header('x-llm-proxy-affinity')).toBe('hit');
    expect(Number(waiting.header('x-llm-proxy-queue-ms'))).toBeGreaterThan(0);
    expect(other.header('x-llm-proxy-queue-ms')).toBe('0');
  });

  it('goes the usual way when that takes too long', async () => {
    const set = await conversing('PT0.05S');
    await set.chat({ messages: [{ role: 'user', content: 'hi' }] }).end();
    const held = holdAnswers(set.a);
    const other = set.chat(say('another conversation'));
    await waitFor(() => held.order.length === 1, 'a is busy');
    const moved = await set.chat(turn('and?')).end();
    expect([moved.header('x-llm-proxy-upstream'), moved.header('x-llm-proxy-affinity')]).toEqual([
      'b',
      'moved',
    ]);
    expect(Number(moved.header('x-llm-proxy-queue-ms'))).toBeGreaterThanOrEqual(50);
    held.release();
    await other.end();
  });

  it('ends with a client that leaves', async () => {
    const set = await conversing('PT20S');
    await set.chat({ messages: [{ role: 'user', content: 'hi' }] }).end();
    const held = holdAnswers(set.a);
    const other = set.chat(say('another conversation'));
    await waitFor(() => held.order.length === 1, 'a is busy');
    const gone = set.chat(turn('and?'));
    await queued(set, 1);
    gone.leave();
    await queued(set, 0);
    held.release();
    await other.end();
    expect([held.order.length, set.b.requests.length]).toEqual([1, 0]);
  });

  it('leads nobody to an entry with spill_after: a conversation that spilled comes home', async () => {
    const set = await conversing('PT0S', {
      model: { queue: {}, upstreams: ['a', { upstream: 'b', spill_after: 'PT15S' }] },
    });
    set.a.next((_request, answer) => answer.error(500));
    const spilled = await set.chat({ messages: [{ role: 'user', content: 'hi' }] }).end();
    expect(spilled.header('x-llm-proxy-upstream')).toBe('b');
    const home = await set.chat(turn('and?')).end();
    expect([home.header('x-llm-proxy-upstream'), home.header('x-llm-proxy-affinity')]).toEqual([
      'a',
      'moved',
    ]);
  });
});
