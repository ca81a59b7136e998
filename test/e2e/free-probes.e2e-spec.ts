import { describe, expect, it } from 'vitest';
import { secretKey } from '../support/secret-watch.js';
import type { Script } from '../support/scripted-upstream.js';
import { stage, type Stage } from '../support/stage.js';
import { gate, waitFor } from '../support/wait-for.js';

const fail: Script = (_request, answer) => answer.error(503);
const healthy: Script = (_request, answer) => answer.json(200, { status: 'ok' });
/** It rests for minutes: whatever ends that is a probe. */
const base = { backoff: { base: 'PT10M', cap: 'PT1H' }, probe_interval: 'PT0.05S' };
const free = (probe: object = {}, more: object = {}) => ({
  ...base,
  probe: { mode: 'get', path: '/health', ...probe },
  ...more,
});

async function value(set: Stage, name: string, labels: Record<string, string> = {}): Promise<number> {
  return (await set.gateway.metrics()).sum(name, { upstream: 'a', ...labels });
}
const pings = (set: Stage, result: string) => value(set, 'llm_proxy_probe_pings_total', { result });
const cooling = (set: Stage) => value(set, 'llm_proxy_upstream_cooling_seconds');

async function makeRest(set: Stage, script: Script = fail): Promise<void> {
  set.a.next(script);
  expect((await set.chat().end()).status).toBe(503);
}

describe('probes of a free endpoint', () => {
  it('ask by GET at the host, with key and headers and nothing else, and bring it back', async () => {
    const set = await stage({
      provider: {
        headers: { 'x-title': 'llm' },
        patch: { max_tokens: 5 },
        session_header: 'x-session',
      },
      upstream: free({ path: '/api/version?full=1' }),
    });
    set.a.onProbe = healthy;
    await makeRest(set);
    await set.gateway.logged('probe upstream=a ok, back in the pool');
    expect([await cooling(set), await value(set, 'llm_proxy_upstream_fail_streak')]).toEqual([0, 0]);
    const [probe] = set.a.probes;
    expect([probe?.method, probe?.target, probe?.text]).toEqual(['GET', '/api/version?full=1', '']);
    expect(probe?.headerNames.toSorted()).toEqual([
      'accept-encoding',
      'authorization',
      'connection',
      'host',
      'x-title',
    ]);
    expect(probe?.header('authorization')).toBe(`Bearer ${secretKey('a')}`);
    expect(await pings(set, 'ok')).toBe(1);
    expect((await set.chat().end()).status).toBe(200);
    expect(set.a.requests.every((request) => !request.text.includes('2+2'))).toBe(true);
    expect(await value(set, 'llm_proxy_requests_total')).toBe(2);
  });

  it.each([
    ['a 503', {}, fail],
    ['a 204 where 200 is expected', {}, (_r, answer) => answer.send(204, '')],
    ['a 200 where others are expected', { expect: [201, 204] }, healthy],
    ['a redirect', {}, (_r, answer) => answer.send(302, '', { location: '/ok' })],
    ['a reset', {}, (_r, answer) => answer.reset()],
    ['a broken head', {}, (_r, answer) => answer.raw('nonsense\r\n\r\n')],
  ] as [string, object, Script][])('change nothing where the answer is %s', async (_what, probe, script) => {
    const set = await stage({ upstream: free(probe) });
    set.a.onProbe = script;
    await makeRest(set);
    await waitFor(async () => (await pings(set, 'fail')) >= 2, 'two probes failed');
    expect(await cooling(set)).toBeGreaterThan(590);
    expect(await value(set, 'llm_proxy_upstream_fail_streak')).toBe(1);
    expect([await pings(set, 'ok'), set.a.chats.length]).toEqual([0, 1]);
    expect(new Set(set.a.probes.map(({ target }) => target))).toEqual(new Set(['/health']));
  });

  it.each([
    ['one of a list', { expect: [200, 204] }, (_r, answer) => answer.send(204, '')],
    ['a redirect that is expected', { expect: 302 }, (_r, answer) => answer.send(302, '', { location: '/' })],
    ['a page', {}, (_r, answer) => answer.send(200, '<html>', { 'content-type': 'text/html' })],
    ['an endless body', {}, (_r, answer) => answer.head(200).then(() => answer.write('x'))],
    ['a large body', {}, (_r, answer) => answer.send(200, Buffer.alloc(300_000))],
  ] as [string, object, Script][])('take as a sign of life: %s', async (_what, probe, script) => {
    const set = await stage({ upstream: free(probe) });
    set.a.onProbe = script;
    await makeRest(set);
    await set.gateway.logged('back in the pool');
    expect(set.a.probes).toHaveLength(1);
  });

  it('never overlap, give up on silence, and use their connection again', async () => {
    const set = await stage({ upstream: free({}, { first_byte_timeout: 'PT0.15S' }) });
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
    const before = set.a.probes.length;
    set.a.onProbe = fail;
    await waitFor(() => set.a.probes.length > before + 3, 'more probes came');
    const connections = set.a.probes.slice(before + 1).map(({ connection }) => connection);
    expect(new Set(connections).size).toBe(1);
  });

  it('are not sent before the Retry-After of the provider has passed', async () => {
    const set = await stage({ upstream: free() });
    let askedAt = 0;
    let probedAt = 0;
    set.a.onProbe = (_r, answer) => {
      probedAt ||= performance.now();
      return answer.error(503);
    };
    await makeRest(set, (_r, answer) => {
      askedAt = performance.now();
      return answer.error(429, { 'retry-after-ms': '400' });
    });
    await waitFor(() => probedAt > 0, 'a probe came');
    expect(probedAt - askedAt).toBeGreaterThanOrEqual(399);
  });

  it('are what each upstream says, key by key over its provider', async () => {
    const set = await stage({
      upstreams: 2,
      provider: { ...base, probe: { mode: 'get', path: '/of-provider', expect: 204 } },
      upstream: (i) => (i === 0 ? { probe: { path: '/of-upstream' } } : { probe: { mode: 'completion' } }),
    });
    set.a.onProbe = (_r, answer) => answer.send(204, '');
    set.a.next(fail);
    set.b.next(fail);
    await set.chat().end();
    await set.gateway.logged('probe upstream=a ok, back in the pool');
    await set.gateway.logged('probe upstream=b ok, back in the pool');
    expect(set.a.probes.map(({ method, target }) => [method, target])).toEqual([['GET', '/of-upstream']]);
    expect(set.b.probes.map(({ method }) => method)).toEqual(['POST']);
  });
});

describe('probes with wake: trial', () => {
  it('only let a request try: its success ends the rest', async () => {
    const set = await stage({ upstream: free({ path: '/v1/models', wake: 'trial' }) });
    set.a.onProbe = fail;
    await makeRest(set);
    await waitFor(async () => (await pings(set, 'fail')) >= 1, 'a probe failed');
    expect((await set.chat().end()).json).toMatchObject({ error: { code: 'all_upstreams_cooling' } });
    set.a.onProbe = healthy;
    await set.gateway.logged('probe upstream=a ok, a request may try it');
    expect(await cooling(set)).toBeGreaterThan(590);
    expect(await value(set, 'llm_proxy_upstream_fail_streak')).toBe(1);
    const held = gate();
    set.a.next(async (_r, answer) => {
      await held.opened;
      await answer.json(200, { choices: [] });
    });
    const tried = set.chat();
    await set.a.chat(1);
    held.open();
    expect((await tried.end()).status).toBe(200);
    expect([await cooling(set), await value(set, 'llm_proxy_upstream_fail_streak')]).toEqual([0, 0]);
  });

  it('do not wake at once what a trial has found broken, however well they are answered', async () => {
    const set = await stage({ upstream: free({ wake: 'trial' }) });
    set.a.onProbe = healthy;
    await makeRest(set);
    await set.gateway.logged('a request may try it');
    set.a.always(fail);
    expect((await set.chat().end()).json).toMatchObject({ error: { code: 'all_upstreams_failed' } });
    const asked = set.a.probes.length;
    await waitFor(() => set.a.probes.length > asked + 2, 'more probes came');
    expect((await set.chat().end()).json).toMatchObject({ error: { code: 'all_upstreams_cooling' } });
    expect(set.a.chats).toHaveLength(2);
    expect(await value(set, 'llm_proxy_upstream_fail_streak')).toBe(2);
  });

  it('stand behind what is healthy, and work with completions too', async () => {
    const set = await stage({
      upstreams: 2,
      upstream: (i) => (i === 0 ? { ...base, probe: { wake: 'trial' } } : {}),
      file: () => ({
        models: [
          { name: 'm', upstreams: ['a', 'b'] },
          { name: 'only', upstreams: ['a'] },
        ],
      }),
    });
    set.a.next(fail);
    expect((await set.chat().end()).header('x-llm-proxy-upstream')).toBe('b');
    await set.gateway.logged('a request may try it');
    expect((await set.chat().end()).header('x-llm-proxy-upstream')).toBe('b');
    expect((await set.chat({ model: 'only' }).end()).status).toBe(200);
    expect((await set.chat().end()).header('x-llm-proxy-upstream')).toBe('a');
  });
});
