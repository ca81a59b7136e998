import { describe, expect, it } from 'vitest';
import { byKey, keyOf, keysAt, ok, pool, refuse } from '../support/key-pool.js';
import { secretKey } from '../support/secret-watch.js';
import { stage, type Stage } from '../support/stage.js';
import { gate, waitFor } from '../support/wait-for.js';

const RESTING = 'llm_proxy_key_resting_seconds';

async function resting(set: Stage, key: string, upstream: string): Promise<number> {
  return (await set.gateway.metrics()).sum(RESTING, { provider: 'pa', key, upstream });
}

describe('a pool of keys', () => {
  it('takes turns, or is used in order', async () => {
    const turns = await stage({ provider: pool('xyz', { key_order: 'round_robin' }) });
    for (let i = 0; i < 4; i++) await turns.chat().end();
    expect(keysAt(turns.a)).toBe('xyzx');
    const ordered = await stage({ provider: pool('xyz') });
    for (let i = 0; i < 3; i++) await ordered.chat().end();
    expect(keysAt(ordered.a)).toBe('xxx');
  });

  it('goes on with the key that issued what a request names, as long as that can be used', async () => {
    const set = await stage({ provider: pool('xy', { key_order: 'round_robin', protocol: ['responses'] }) });
    let number = 0;
    set.a.always((_request, answer) => answer.json(200, { id: `resp_${++number}`, output: [] }));
    const ask = async (previous?: string): Promise<string> => {
      const body = {
        model: 'm',
        input: 'x',
        ...(previous === undefined ? {} : { previous_response_id: previous }),
      };
      const answer = await set.gateway.send({ path: '/v1/responses', body }).end();
      expect(answer.status).toBe(200);
      return keyOf(set.a.last);
    };
    const issuers = [await ask(), await ask()];
    expect(issuers.toSorted()).toEqual(['x', 'y']);
    for (const id of ['resp_1', 'resp_1', 'resp_2', 'resp_1', 'resp_2'])
      expect(await ask(id)).toBe(issuers[id === 'resp_1' ? 0 : 1]);
    set.a.next(refuse(429));
    expect(await ask('resp_1')).toBe(issuers[1]);
  });

  it('is tried as a whole before a weaker model', async () => {
    const set = await stage({ upstreams: 2, provider: (i) => (i === 0 ? pool('xyz') : {}) });
    set.a.always(refuse(429));
    const answer = await set.chat().end();
    expect([keysAt(set.a), set.b.chats.length]).toEqual(['xyz', 1]);
    expect(answer.header('x-llm-proxy-attempts')).toBe('4');
    expect(answer.header('x-llm-proxy-trail')).toBe('a/x=429,a/y=429,a/z=429,b=200');
    const metrics = await set.gateway.metrics();
    expect(metrics.sum('llm_proxy_requests_total', { upstream: 'a', result: '429' })).toBe(3);
    expect(
      metrics.sum('llm_proxy_failures_total', { upstream: 'a', provider: 'pa', class: 'rate_limited' }),
    ).toBe(3);
    expect(metrics.sum('llm_proxy_upstream_fail_streak', { upstream: 'a' })).toBe(0);
    expect(set.gateway.messages).toContainEqual(
      expect.stringMatching(/upstream=a key=x returned 429 → next key \(rate_limited: key rests PT30S\)$/),
    );
    expect(set.gateway.messages).toContainEqual(
      expect.stringMatching(/upstream=b done result=ok .*chain=a\/x=429,a\/y=429,a\/z=429,b=ok$/),
    );
  });

  it('holds one slot through all its keys, and gives it back', async () => {
    const set = await stage({ provider: pool('xy', { max_concurrency: 1 }) });
    const door = gate();
    set.a.always(async (request, answer) => {
      if (keyOf(request) === 'x') await refuse(429)(request, answer);
      else {
        await door.opened;
        await ok(request, answer);
      }
    });
    const first = set.chat();
    await set.a.chat(1);
    expect((await set.chat().end()).json['error']).toMatchObject({ code: 'all_upstreams_busy' });
    expect(await set.gateway.inflight('a')).toBe(1);
    door.open();
    expect((await first.end()).status).toBe(200);
    await waitFor(async () => (await set.gateway.inflight('a')) === 0, 'the slot was free');
    expect(set.a.mostAtOnce).toBe(1);
  });

  it('stops between two keys when the client has gone', async () => {
    const set = await stage({ provider: pool('xy') });
    const client = set.gateway.connect();
    set.a.always((_request) => client.close());
    client.send({ body: { model: 'm', messages: [] } });
    await set.gateway.logged('result=cancelled');
    expect(keysAt(set.a)).toBe('x');
  });

  it('counts each key as an attempt of max_attempts', async () => {
    const set = await stage({ upstreams: 2, provider: pool('xyz'), model: { max_attempts: 2 } });
    set.a.always(refuse(429));
    const answer = await set.chat().end();
    expect(answer.json['error']).toMatchObject({ code: 'all_upstreams_failed' });
    expect([keysAt(set.a), set.b.chats.length]).toEqual(['xy', 0]);
  });

  it('sends nothing when no key is left for good, and says so', async () => {
    const dead = [
      { id: 'off', value: secretKey('off'), disabled: true },
      { id: 'old', value: secretKey('old'), expires: '2020-01-31' },
    ];
    const set = await stage({ provider: { key: undefined, keys: dead } });
    const answer = await set.chat().end();
    expect([answer.status, answer.header('retry-after'), answer.header('x-should-retry')]).toEqual([
      503,
      undefined,
      'false',
    ]);
    expect(answer.json['error']).toMatchObject({ code: 'no_usable_key', attempts: [] });
    expect(set.a.requests).toEqual([]);
    const metrics = await set.gateway.metrics();
    expect(metrics.sum('llm_proxy_rejected_total', { model: 'm', reason: 'no_key' })).toBe(1);
    expect(metrics.sum('llm_proxy_key_expires_seconds', { provider: 'pa', key: 'old' })).toBe(0);
    expect(set.gateway.messages).toContainEqual(
      expect.stringContaining('upstream=a closed by no_key, skipped'),
    );
  });

  it('without a usable key lets the next upstream answer', async () => {
    const none = { key: undefined, keys: ['${NONE:-}'] };
    const set = await stage({ upstreams: 2, provider: (i) => (i === 0 ? none : {}) });
    expect((await set.chat().end()).header('x-llm-proxy-upstream')).toBe('b');
    expect(set.a.requests).toEqual([]);
  });

  it('of nothing means no authorization', async () => {
    const set = await stage({ provider: { key: undefined, keys: [] } });
    expect((await set.chat().end()).status).toBe(200);
    expect(set.a.last.header('authorization')).toBeUndefined();
  });

  it('shows when each key is back, at which upstream', async () => {
    const set = await stage({
      provider: pool('xy'),
      file: () => ({
        upstreams: ['a', 'a2'].map((id) => ({ id, provider: 'pa', model: id })),
        models: ['a', 'a2'].map((id) => ({ name: id, upstreams: [id] })),
      }),
    });
    for (const upstream of ['', 'a', 'a2']) expect(await resting(set, 'x', upstream)).toBe(0);
    set.a.next(refuse(429, {}, { 'retry-after': '40' }), refuse(401));
    const failed = await set.chat({ model: 'a' }).end();
    expect(failed.json['error']).toMatchObject({ code: 'all_upstreams_failed' });
    const [x, y] = [await resting(set, 'x', 'a'), await resting(set, 'y', '')];
    expect(x > 30 && x <= 40).toBe(true);
    expect(y > 590 && y <= 600).toBe(true);
    expect([await resting(set, 'x', ''), await resting(set, 'x', 'a2')]).toEqual([0, 0]);
    const cooling = await set.chat({ model: 'a' }).end();
    expect(cooling.json['error']).toMatchObject({ code: 'all_upstreams_cooling', attempts: [] });
    expect(Number(cooling.header('retry-after'))).toBeLessThanOrEqual(40);
    expect((await set.chat({ model: 'a2' }).end()).status).toBe(200);
    expect(keysAt(set.a)).toBe('xyx');
  });

  it('masks each of its keys in what a provider says', async () => {
    const set = await stage({ provider: pool('xy') });
    set.a.always(
      refuse(
        422,
        { message: `neither ${secretKey('x')} nor ${secretKey('y')}` },
        { 'x-echo': secretKey('y') },
      ),
    );
    const answer = await set.chat().end();
    expect(answer.status).toBe(422);
    expect(answer.text).toContain('neither sk-');
    expect(answer.header('x-echo')).toContain('...');
  });

  it('ends the rest of a key that was too fast when a request that began before succeeds', async () => {
    const set = await stage({ provider: pool('x') });
    const door = gate();
    set.a.next(async (request, answer) => {
      await door.opened;
      await ok(request, answer);
    }, refuse(429));
    const first = set.chat();
    await set.a.chat(0);
    await set.chat().end();
    expect(await resting(set, 'x', 'a')).toBeGreaterThan(0);
    door.open();
    await first.end();
    await waitFor(async () => (await resting(set, 'x', 'a')) === 0, 'the key was back');
    expect((await set.chat().end()).status).toBe(200);
  });

  it.each([401, 402])('does not end the rest of a key that got %i by such a success', async (status) => {
    const set = await stage({ provider: pool('x') });
    const door = gate();
    set.a.next(async (request, answer) => {
      await door.opened;
      await ok(request, answer);
    }, refuse(status));
    const first = set.chat();
    await set.a.chat(0);
    await set.chat().end();
    door.open();
    await first.end();
    expect((await set.chat().end()).json['error']).toMatchObject({ code: 'all_upstreams_cooling' });
    expect(await resting(set, 'x', '')).toBeGreaterThan(0);
  });

  it('is asked with a key that can be used when its upstream is probed', async () => {
    const set = await stage({
      provider: pool('xy', {
        probe_interval: 'PT0.05S',
        errors: { server_error: { retries: 0, rest: 'PT1M' } },
      }),
    });
    set.a.onProbe = ok;
    set.a.next(refuse(401), refuse(503));
    await set.chat().end();
    await set.gateway.logged('probe upstream=a ok, back in the pool');
    expect(set.a.probes.map(keyOf)).toEqual(['y']);
  });
});

describe('a pool with simple errors', () => {
  const simple = (more = {}) => pool('xy', { errors: 'simple', ...more });

  it('tries its keys on 429 and 402, and the streak grows once', async () => {
    const set = await stage({ upstreams: 2, provider: (i) => (i === 0 ? simple({ backoff: 'PT1H' }) : {}) });
    set.a.next(refuse(429), refuse(402));
    expect((await set.chat().end()).header('x-llm-proxy-upstream')).toBe('b');
    expect(keysAt(set.a)).toBe('xy');
    const metrics = await set.gateway.metrics();
    expect(metrics.sum('llm_proxy_upstream_fail_streak', { upstream: 'a' })).toBe(1);
    expect(metrics.sum(RESTING)).toBe(0);
  });

  it('raises no streak where another key answers', async () => {
    const set = await stage({ provider: simple({ backoff: 'PT1H' }) });
    set.a.always(byKey({ x: refuse(429) }));
    expect((await set.chat().end()).status).toBe(200);
    expect((await set.gateway.metrics()).sum('llm_proxy_upstream_fail_streak')).toBe(0);
  });

  it('goes on to the next upstream at a 5xx, and lets a 401 pass', async () => {
    const set = await stage({ upstreams: 2, provider: (i) => (i === 0 ? simple() : {}) });
    set.a.next(refuse(500), refuse(401, { message: 'mine' }));
    expect((await set.chat().end()).header('x-llm-proxy-upstream')).toBe('b');
    const passed = await set.chat().end();
    expect([passed.status, passed.text.includes('mine')]).toEqual([401, true]);
    expect(keysAt(set.a)).toBe('xx');
  });
});
