import { describe, expect, it } from 'vitest';
import { completion, delta, DONE } from '../support/answers.js';
import type { Script } from '../support/scripted-upstream.js';
import { stage, type StageOptions } from '../support/stage.js';
import { gate } from '../support/wait-for.js';

const short: StageOptions = {
  upstreams: 2,
  upstream: (i) => (i === 0 ? { first_byte_timeout: 'PT0.1S' } : {}),
};

describe('first_byte_timeout', () => {
  const silent: [string, Script][] = [
    ['no head', () => {}],
    ['a head without a body byte', (_r, answer) => answer.sseHead()],
    ['half a head', (_r, answer) => answer.raw('HTTP/1.1 200 OK\r\nconte')],
    ['an informational head', (_r, answer) => answer.raw('HTTP/1.1 102 Processing\r\n\r\n')],
    [
      'an empty chunk that is not there',
      async (_r, answer) => {
        await answer.sseHead();
        await answer.write('');
      },
    ],
  ];
  it.each(silent)('fails over after %s', async (_what, script) => {
    const set = await stage(short);
    set.a.next(script);
    const answer = await set.stream().end();
    expect(answer.header('x-llm-proxy-upstream')).toBe('b');
    expect(answer.text.endsWith(DONE)).toBe(true);
    expect(
      (await set.gateway.metrics()).sum('llm_proxy_requests_total', { upstream: 'a', result: 'timeout' }),
    ).toBe(1);
    const line = await set.gateway.logged('TIMEOUT');
    expect(line.msg).toMatch(
      /^\[llm-proxy\] chat model=m upstream=a TIMEOUT: no first byte within 100ms → failover/,
    );
    await set.a.last.closed;
    expect(set.a.last.aborted).toBe(true);
  });

  it('counts the time to connect', async () => {
    // An address that never answers a SYN is not to be had; a TLS handshake that nobody answers is part of connecting too.
    const set = await stage({
      ...short,
      file: ([a, b]) => ({
        providers: [
          { id: 'pa', url: `https://127.0.0.1:${a?.port}/v1` },
          { id: 'pb', url: b?.url },
        ],
      }),
    });
    set.a.onConnection = () => {};
    expect((await set.stream().end()).header('x-llm-proxy-upstream')).toBe('b');
    expect(
      (await set.gateway.metrics()).sum('llm_proxy_requests_total', { upstream: 'a', result: 'timeout' }),
    ).toBe(1);
  });

  it.each([': ping\n\n', ':', '\n', 'd'])('is content with any byte: %j', async (byte) => {
    const set = await stage(short);
    const hold = gate();
    set.a.next(async (_r, answer) => {
      await answer.sseHead();
      await answer.write(byte);
      await hold.opened;
      await answer.end(DONE);
    });
    const answer = await set.stream().head();
    const other = await stage({ upstream: { first_byte_timeout: 'PT0.2S' } });
    other.a.always(() => {});
    await other.stream().end();
    expect(answer.ending).toBe(null);
    hold.open();
    await answer.end();
    expect(answer.header('x-llm-proxy-upstream')).toBe('a');
  });

  it('is for streams only', async () => {
    const set = await stage(short);
    const other = await stage({ upstream: { first_byte_timeout: 'PT0.2S' } });
    other.a.always(() => {});
    set.a.next(async (_r, answer) => {
      await other.stream().end();
      await answer.json(200, completion());
    });
    expect((await set.chat().end()).header('x-llm-proxy-upstream')).toBe('a');
  });

  it('is decided by `stream` in the final body', async () => {
    const set = await stage({
      upstreams: 2,
      upstream: (i) => (i === 0 ? { first_byte_timeout: 'PT0.1S', patch: { stream: true } } : {}),
    });
    set.a.next(() => {});
    expect((await set.chat().end()).header('x-llm-proxy-upstream')).toBe('b');
    expect(
      (await set.gateway.metrics()).sum('llm_proxy_requests_total', { upstream: 'a', result: 'timeout' }),
    ).toBe(1);
  });

  it('of the provider counts where the upstream has none, and PT0S switches it off', async () => {
    const set = await stage({
      upstreams: 3,
      provider: { first_byte_timeout: 'PT0.1S' },
      upstream: (i) => (i === 1 ? { first_byte_timeout: 'PT0S' } : {}),
    });
    set.a.next(() => {});
    const other = await stage({ upstream: { first_byte_timeout: 'PT0.3S' } });
    other.a.always(() => {});
    set.b.next(async (_r, answer) => {
      await other.stream().end();
      await answer.sse([delta('late'), DONE]);
    });
    const answer = await set.stream().end();
    expect(answer.header('x-llm-proxy-upstream')).toBe('b');
    expect(answer.text).toContain('late');
  });

  it('alone answers 503 with the result `timeout`', async () => {
    const set = await stage({ upstream: { first_byte_timeout: 'PT0.1S' } });
    set.a.next(() => {});
    const answer = await set.stream().end();
    expect(answer.status).toBe(503);
    expect(answer.json).toMatchObject({
      error: {
        code: 'all_upstreams_failed',
        attempts: [{ upstream: 'a', provider: 'pa', result: 'timeout' }],
      },
    });
  });

  it('the head of a stream waits for the first body byte', async () => {
    const set = await stage();
    const hold = gate();
    const headSent = gate();
    set.a.next(async (_r, answer) => {
      await answer.sseHead();
      headSent.open();
      await hold.opened;
      await answer.write(delta('x'));
      await answer.end(DONE);
    });
    const answer = set.stream();
    await headSent.opened;
    for (let i = 0; i < 5; i++) await set.gateway.metrics();
    expect(answer.status).toBe(0);
    hold.open();
    expect((await answer.end()).status).toBe(200);
  });
});
