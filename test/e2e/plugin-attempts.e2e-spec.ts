import { describe, expect, it } from 'vitest';
import type { AttemptRecord, Exchange, ExchangeInterceptor } from '../../src/contracts/index.js';
import { bearer, consumer } from '../support/consumers.js';
import { withHooks } from '../support/plugin.js';
import type { Stage } from '../support/stage.js';
import { gate, waitFor } from '../support/wait-for.js';

type Break = (exchange: Exchange) => unknown;

/** As plugins in plain JavaScript see it. */
const listOf = ({ attempts }: Exchange) => attempts as unknown as (Partial<Record<string, unknown>> | null)[];

const CHANGES: readonly (readonly [string, Break])[] = [
  ['push', (exchange) => listOf(exchange).push({})],
  ['pop', (exchange) => listOf(exchange).pop()],
  ['a record replaced', (exchange) => (listOf(exchange)[0] = null)],
  ['length', (exchange) => (listOf(exchange).length = 0)],
  ['another list', (exchange) => ((exchange as { attempts: unknown }).attempts = null)],
];
const RECORD_CHANGES: readonly (readonly [string, Break])[] = [
  ['the upstream of a record', (exchange) => (listOf(exchange).at(-1)!.upstream = undefined)],
  ['a member deleted', (exchange) => delete listOf(exchange).at(-1)!.result],
];

async function expectNothingHeld(set: Stage): Promise<void> {
  await waitFor(async () => (await set.gateway.inflight('a')) === 0, 'no slot was taken');
  const next = await set.chat().end();
  expect([next.status, next.ending]).toEqual([200, 'complete']);
}

/** The hook breaks something in the first request only. */
const once = (run: Break): Break => {
  let done = false;
  return (exchange) => {
    if (done) return;
    done = true;
    run(exchange);
  };
};

describe('exchange.attempts', () => {
  it.each(CHANGES)('cannot be changed by onRequest: %s', async (_name, change) => {
    const breaks = once(change);
    const set = await withHooks({ onRequest: (exchange) => void breaks(exchange) });
    const answer = await set.chat().end();
    expect([answer.status, answer.json]).toMatchObject([500, { error: { code: 'plugin_failed' } }]);
    await expectNothingHeld(set);
  });

  it.each([...CHANGES, ...RECORD_CHANGES])('cannot be changed by onFailover: %s', async (_name, change) => {
    const set = await withHooks({ onFailover: (exchange) => void change(exchange) }, { upstreams: 2 });
    for (const upstream of [set.a, set.b]) upstream.next((_r, answer) => answer.error(503));
    const answer = await set.chat().end();
    expect(answer.json).toMatchObject({
      error: {
        code: 'all_upstreams_failed',
        attempts: [
          { upstream: 'a', result: '5xx', status: 503 },
          { upstream: 'b', result: '5xx', status: 503 },
        ],
      },
    });
    expect(answer.header('x-llm-proxy-trail')).toBe('a=503,b=503');
    expect(set.gateway.lines.filter(({ hook }) => hook === 'onFailover')).toHaveLength(2);
  });

  it.each([...CHANGES, ...RECORD_CHANGES])('cannot be changed by onResponse: %s', async (_name, change) => {
    const breaks = once(change);
    const hooks: ExchangeInterceptor = { onResponse: (exchange) => (breaks(exchange), null) };
    const set = await withHooks(hooks, { upstreams: 2 });
    set.a.next((_r, answer) => answer.error(503));
    const answer = await set.chat().end();
    expect([answer.status, answer.json]).toMatchObject([500, { error: { code: 'plugin_failed' } }]);
    expect((await set.gateway.metrics()).sum('llm_proxy_upstream_inflight', {})).toBe(0);
  });

  it('tells at each hook what was tried by then', async () => {
    const seen: (readonly AttemptRecord[])[] = [];
    const look = ({ attempts }: Exchange) => void seen.push(attempts);
    const set = await withHooks(
      { onRequest: look, onFailover: look, onFinish: look, onAttempt: ({ exchange }) => look(exchange) },
      { upstreams: 2 },
    );
    set.a.next((_r, answer) => answer.error(503));
    await set.chat().end();
    await waitFor(() => seen.length === 5, 'all hooks were called');
    expect(seen.map((list) => list.map(({ upstream, result }) => `${upstream}=${result}`).join())).toEqual([
      '',
      '',
      'a=5xx',
      'a=5xx',
      'a=5xx,b=ok',
    ]);
  });
});

describe('an error that cannot be told', () => {
  /** Reaches behind the contract, into what every error is made of. */
  const spoil: Break = (exchange) => {
    (exchange as unknown as { records: unknown[] }).records.push(undefined);
  };

  it('ends with a plain 500, and nothing is held', async () => {
    const finished: number[] = [];
    const spoils = once(spoil);
    const set = await withHooks({
      onFailover: (exchange) => spoils(exchange),
      onFinish: (_exchange, { status }) => void finished.push(status),
    });
    set.a.next((_r, answer) => answer.error(503));
    const answer = await set.chat().end();
    expect([answer.status, answer.ending]).toEqual([500, 'complete']);
    expect(answer.json).toMatchObject({ error: { code: 'internal_error' } });
    await set.gateway.logged('unexpected error in the answer of an error');
    await waitFor(() => finished.length === 1, 'onFinish was called');
    expect(finished).toEqual([500]);
    expect((await set.gateway.metrics()).sum('llm_proxy_upstream_inflight', {})).toBe(0);
  });

  it('breaks a stream of heartbeats, whose head is gone', async () => {
    const set = await withHooks(
      { onFailover: (exchange) => spoil(exchange) as undefined },
      { model: { heartbeat: { after: 'PT0.01S', every: 'PT0.01S' } } },
    );
    const hold = gate();
    set.a.next(async (_r, answer) => {
      await hold.opened;
      await answer.error(503);
    });
    const stream = await set.stream().saw(': waiting');
    hold.open();
    await stream.end();
    expect([stream.status, stream.ending]).toEqual([200, 'cut']);
  });

  it('keeps no place of a consumer', async () => {
    const spoils = once(spoil);
    const set = await withHooks(
      { onFailover: (exchange) => spoils(exchange) },
      {
        file: () => ({
          consumers: [consumer('team', { max_concurrency: 1 })],
        }),
      },
    );
    set.a.next((_r, answer) => answer.error(503));
    const mine = { headers: bearer('team') };
    const broken = await set.chat({}, mine).end();
    expect([broken.status, broken.json]).toMatchObject([500, { error: { code: 'internal_error' } }]);
    const next = await set.chat({}, mine).end();
    expect(next.status).toBe(200);
  });
});

describe('a key of the body that is no text', () => {
  it.each([[5], [{}], [Symbol('s')], [undefined], [null]])('is refused: %s', async (key) => {
    const breaks = once(({ body }) => body.set(key as unknown as string, 1));
    const set = await withHooks({ onRequest: (exchange) => void breaks(exchange) });
    const answer = await set.chat().end();
    expect([answer.status, answer.json]).toMatchObject([500, { error: { code: 'plugin_failed' } }]);
    expect(set.a.requests).toHaveLength(0);
    await expectNothingHeld(set);
  });
});
