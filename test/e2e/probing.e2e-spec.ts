import { describe, expect, it } from 'vitest';
import { completion, delta } from '../support/answers.js';
import { secretKey } from '../support/secret-watch.js';
import type { Script } from '../support/scripted-upstream.js';
import { stage, type Stage } from '../support/stage.js';
import { gate, waitFor } from '../support/wait-for.js';

const fail: Script = (_request, answer) => answer.error(503);
const fast = { backoff: 'PT1M', probe_interval: 'PT0.05S' };
const longRest: Script = (_request, answer) => answer.error(429);

async function pings(set: Stage, result: string): Promise<number> {
  return (await set.gateway.metrics()).sum('llm_proxy_probe_pings_total', {
    upstream: 'a',
    provider: 'pa',
    result,
  });
}

async function cooling(set: Stage): Promise<number> {
  return (await set.gateway.metrics()).sum('llm_proxy_upstream_cooling_seconds', { upstream: 'a' });
}

/** Rests for a while: three seconds are more than any of these tests needs. */
async function makeRest(set: Stage, script: Script = longRest): Promise<void> {
  set.a.next(script);
  await set.chat().end();
}

describe('background probing', () => {
  it('brings an upstream back at once, and leaves the rest of the answer', async () => {
    const set = await stage({ upstream: fast });
    set.a.onProbe = async (_r, answer) => {
      await answer.sseHead();
      await answer.write(delta('4'));
    };
    await makeRest(set);
    await set.gateway.logged('probe upstream=a ok, back in the pool');
    expect(await cooling(set)).toBe(0);
    expect(set.a.probes).toHaveLength(1);
    await set.a.probes[0]?.closed;
    expect(set.a.probes[0]?.aborted).toBe(true);
    expect(await pings(set, 'ok')).toBe(1);
    expect((await set.chat().end()).status).toBe(200);
    expect((await set.gateway.metrics()).sum('llm_proxy_requests_total')).toBe(2);
  });

  it('sends the probe of the specification, with patches, key, headers and session', async () => {
    const set = await stage({
      provider: {
        patch: { of_provider: 1, max_tokens: 5 },
        headers: { 'x-title': 'llm' },
        session_header: 'x-session',
      },
      upstream: { ...fast, patch: { of_upstream: 2 } },
      model: { patch: { of_model: 3 } },
    });
    await makeRest(set);
    await waitFor(() => set.a.probes.length > 0, 'a probe came');
    const [probe] = set.a.probes;
    expect(probe?.json).toEqual({
      model: 'real-a',
      messages: [{ role: 'user', content: '2+2=?' }],
      max_tokens: 5,
      stream: true,
      of_provider: 1,
      of_upstream: 2,
    });
    expect(probe?.target).toBe('/v1/chat/completions');
    expect(probe?.header('authorization')).toBe(`Bearer ${secretKey('a')}`);
    expect(probe?.header('x-title')).toBe('llm');
    expect(probe?.header('x-session')).toMatch(/^[0-9a-f]{64}$/);
    expect(probe?.header('content-type')).toBe('application/json');
    expect(probe?.header('accept-encoding')).toBe('identity');
  });

  it.each([
    ['503', fail],
    ['400', (_r: unknown, answer) => answer.error(400)],
    ['an HTML page', (_r: unknown, answer) => answer.send(200, '<html>', { 'content-type': 'text/html' })],
    ['an error in a 200', (_r: unknown, answer) => answer.json(200, { error: { message: 'no' } })],
    ['a 2xx without a byte', (_r: unknown, answer) => answer.sse([])],
    ['a reset', (_r: unknown, answer) => answer.reset()],
    ['a redirect', (_r: unknown, answer) => answer.send(302, '', { location: '/' })],
  ] as [string, Script][])('changes nothing where the probe fails: %s', async (_what, script) => {
    const set = await stage({ upstream: fast });
    set.a.onProbe = script;
    await makeRest(set);
    const before = (await set.gateway.metrics()).sum('llm_proxy_upstream_fail_streak', { upstream: 'a' });
    await waitFor(async () => (await pings(set, 'fail')) >= 2, 'two probes failed');
    const metrics = await set.gateway.metrics();
    expect(metrics.sum('llm_proxy_upstream_fail_streak', { upstream: 'a' })).toBe(before);
    expect(metrics.sum('llm_proxy_requests_total')).toBe(1);
    expect(await pings(set, 'ok')).toBe(0);
    expect(set.gateway.messages).toContain('[llm-proxy] probe upstream=a silent, stays in backoff');
  });

  it('takes a JSON answer as a sign of life', async () => {
    const set = await stage({ upstream: fast });
    set.a.onProbe = (_r, answer) => answer.json(200, completion('4'));
    await makeRest(set);
    await set.gateway.logged('back in the pool');
  });

  it('never overlaps itself, and gives up on silence', async () => {
    const set = await stage({ upstream: { ...fast, first_byte_timeout: 'PT0.2S' } });
    let open = 0;
    let most = 0;
    set.a.onProbe = async (request) => {
      most = Math.max(most, ++open);
      await request.closed;
      open--;
    };
    await makeRest(set);
    await waitFor(async () => (await pings(set, 'fail')) >= 2, 'two probes were given up');
    expect(most).toBe(1);
  });

  it('takes no slot', async () => {
    const set = await stage({ upstream: { ...fast, max_concurrency: 2 } });
    const probing = gate();
    set.a.onProbe = async (request) => {
      probing.open();
      await request.closed;
    };
    const hold = gate();
    set.a.next(async (_r, answer) => {
      await hold.opened;
      await answer.error(400);
    });
    const holder = set.chat();
    await set.a.chat(0);
    await makeRest(set);
    await probing.opened;
    expect(await set.gateway.inflight('a')).toBe(1);
    hold.open();
    await holder.end();
    expect(await set.gateway.inflight('a')).toBe(0);
  });

  it('stops with the rest', async () => {
    const set = await stage({ upstream: { ...fast, backoff: 'PT0.8S' } });
    const probing = gate();
    set.a.onProbe = async (request) => {
      probing.open();
      await request.closed;
    };
    await makeRest(set);
    await probing.opened;
    await waitFor(async () => (await cooling(set)) === 0, 'the rest was over');
    await set.a.probes[0]?.closed;
    const sent = set.a.probes.length;
    for (let i = 0; i < 30; i++) expect((await set.chat().end()).status).toBe(200);
    expect(set.a.probes).toHaveLength(sent);
  });

  it('sends none where the interval is 0', async () => {
    const set = await stage({ upstream: { backoff: 'PT0.3S', probe_interval: 'PT0S' } });
    await makeRest(set);
    await waitFor(async () => (await cooling(set)) === 0, 'the rest was over');
    expect(set.a.probes).toEqual([]);
  });

  it("sends none before the time that the provider's own Retry-After named", async () => {
    const set = await stage({ upstream: fast });
    let askedAt = 0;
    let probedAt = 0;
    set.a.onProbe = (_r, answer) => {
      probedAt ||= performance.now();
      return answer.error(503);
    };
    await makeRest(set, (_r, answer) => {
      askedAt = performance.now();
      return answer.error(429, { 'retry-after-ms': '500' });
    });
    await waitFor(
      async () => set.a.probes.length > 0 || (await cooling(set)) === 0,
      'a probe came or the rest ended',
    );
    if (probedAt > 0) expect(probedAt - askedAt).toBeGreaterThanOrEqual(499);
  });

  it('counts a probe once, and none as a request', async () => {
    const set = await stage({ upstream: fast });
    await makeRest(set);
    await set.gateway.logged('back in the pool');
    const metrics = await set.gateway.metrics();
    expect(metrics.find('llm_proxy_probe_pings_total').map(({ labels, value }) => [labels, value])).toEqual([
      [{ upstream: 'a', provider: 'pa', result: 'ok' }, 1],
    ]);
    expect(metrics.sum('llm_proxy_requests_total')).toBe(1);
    expect(metrics.sum('llm_proxy_request_duration_seconds_count')).toBe(1);
  });
});
