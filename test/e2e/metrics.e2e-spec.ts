import { describe, expect, it } from 'vitest';
import { completion, delta, DONE, event, finish } from '../support/answers.js';
import type { MetricsText } from '../support/metrics-text.js';
import { stage, type Stage } from '../support/stage.js';
import { gate, waitFor } from '../support/wait-for.js';

const labelled = (metrics: MetricsText, name: string) =>
  metrics.find(name).map(({ labels, value }) => [labels, value]);

async function until(
  set: Stage,
  condition: (metrics: MetricsText) => boolean,
  what: string,
): Promise<MetricsText> {
  let metrics = await set.gateway.metrics();
  await waitFor(async () => condition((metrics = await set.gateway.metrics())), what);
  return metrics;
}

describe('GET /metrics', () => {
  it('is the text format of Prometheus, without authentication', async () => {
    const { gateway } = await stage();
    const answer = await gateway.get('/metrics');
    expect(answer.status).toBe(200);
    expect(answer.header('content-type')).toMatch(/^text\/plain; *version=0\.0\.4/);
    expect((await gateway.send({ method: 'HEAD', path: '/metrics' }).end()).status).toBe(200);
  });

  it('has gauges for every upstream from the start', async () => {
    const { gateway } = await stage({
      upstreams: 3,
      file: () => ({ models: [{ name: 'm', upstreams: ['a'] }] }),
    });
    const metrics = await gateway.metrics();
    for (const name of ['inflight', 'fail_streak', 'cooling_seconds']) {
      expect(labelled(metrics, `llm_proxy_upstream_${name}`)).toEqual(
        ['a', 'b', 'c'].map((id) => [{ upstream: id, provider: `p${id}` }, 0]),
      );
    }
  });

  it('has build information and the default metrics of the process', async () => {
    const { gateway } = await stage();
    const metrics = await gateway.metrics();
    expect(metrics.find('llm_proxy_build_info').map(({ value }) => value)).toEqual([1]);
    for (const name of [
      'process_cpu_seconds_total',
      'process_resident_memory_bytes',
      'nodejs_eventloop_lag_seconds',
    ]) {
      expect(metrics.find(name), name).not.toEqual([]);
    }
  });

  it('gives each metric its type once', async () => {
    const { gateway, chat } = await stage();
    await chat().end();
    const { text } = await gateway.metrics();
    const types = [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name, type]) => `${name} ${type}`);
    expect(new Set(types).size).toBe(types.length);
    for (const line of [
      'llm_proxy_requests_total counter',
      'llm_proxy_probe_pings_total counter',
      'llm_proxy_rejected_total counter',
      'llm_proxy_tokens_total counter',
      'llm_proxy_upstream_inflight gauge',
      'llm_proxy_upstream_fail_streak gauge',
      'llm_proxy_upstream_cooling_seconds gauge',
      'llm_proxy_request_duration_seconds histogram',
      'llm_proxy_first_byte_seconds histogram',
    ]) {
      expect(types).toContain(line);
    }
  });

  it('counts each attempt once, by outcome', async () => {
    const set = await stage({ upstreams: 2 });
    set.a.next(
      (_r, answer) => answer.error(500),
      (_r, answer) => answer.error(404),
      (_r, answer) => answer.error(429),
    );
    for (let i = 0; i < 4; i++) await set.chat().end();
    const metrics = await set.gateway.metrics();
    const base = { model: 'm', upstream: 'a', provider: 'pa' };
    expect(
      labelled(metrics, 'llm_proxy_requests_total').filter(
        ([labels]) => (labels as { upstream: string }).upstream === 'a',
      ),
    ).toEqual([
      [{ ...base, result: '5xx' }, 1],
      [{ ...base, result: '4xx' }, 1],
      [{ ...base, result: '429' }, 1],
      [{ ...base, result: 'ok' }, 1],
    ]);
    expect(metrics.sum('llm_proxy_requests_total', { upstream: 'b', result: 'ok' })).toBe(2);
    expect(metrics.sum('llm_proxy_request_duration_seconds_count', { model: 'm', upstream: 'a' })).toBe(4);
    expect(metrics.sum('llm_proxy_request_duration_seconds_count')).toBe(6);
  });

  it('shows what is in flight', async () => {
    const set = await stage();
    const hold = gate();
    set.a.always(async (_r, answer) => {
      await hold.opened;
      await answer.json(200, completion());
    });
    const answers = [set.chat(), set.chat(), set.chat()];
    await set.a.chat(2);
    expect(await set.gateway.inflight('a')).toBe(3);
    hold.open();
    for (const answer of answers) await answer.end();
    expect(await set.gateway.inflight('a')).toBe(0);
  });

  it('observes the first byte only where one came', async () => {
    const set = await stage({ upstream: { first_byte_timeout: 'PT0.1S' } });
    set.a.next(
      () => {},
      (_r, answer) => answer.reset(),
      (_r, answer) => answer.sse([]),
      (_r, answer) => answer.sse([delta('x'), DONE]),
    );
    for (let i = 0; i < 4; i++) await set.stream().end();
    const metrics = await until(set, (m) => m.sum('llm_proxy_requests_total') === 4, 'all were counted');
    expect(metrics.sum('llm_proxy_request_duration_seconds_count')).toBe(4);
    expect(metrics.sum('llm_proxy_first_byte_seconds_count')).toBe(1);
    expect(metrics.sum('llm_proxy_first_byte_seconds_bucket', { le: '+Inf' })).toBe(1);
  });

  it('counts what was cancelled', async () => {
    const set = await stage();
    set.a.next(() => {});
    const answer = set.chat();
    await set.a.chat(0);
    answer.leave();
    const metrics = await until(set, (m) => m.sum('llm_proxy_requests_total') === 1, 'it was counted');
    expect(labelled(metrics, 'llm_proxy_requests_total')).toEqual([
      [{ model: 'm', upstream: 'a', provider: 'pa', result: 'cancelled' }, 1],
    ]);
  });

  it('counts tokens from the usage of JSON and of streams', async () => {
    const set = await stage();
    await set.chat().end();
    set.a.next((_r, answer) =>
      answer.sse([
        delta('x'),
        finish(),
        event({ choices: [], usage: { prompt_tokens: 100, completion_tokens: 10 } }),
        DONE,
      ]),
    );
    await set.stream().end();
    const metrics = await set.gateway.metrics();
    expect(labelled(metrics, 'llm_proxy_tokens_total')).toEqual([
      [{ model: 'm', upstream: 'a', direction: 'input' }, 107],
      [{ model: 'm', upstream: 'a', direction: 'output' }, 15],
    ]);
  });

  it.each(['"7"', '-7', '1e999', 'null', '{}', '0', '[7]', 'true'])(
    'does not believe a usage of %s',
    async (value) => {
      const set = await stage();
      const body = `{"choices":[],"usage":{"prompt_tokens":${value},"completion_tokens":${value}}}`;
      set.a.next((_r, answer) => answer.json(200, body));
      expect((await set.chat().end()).text).toBe(body);
      expect((await set.gateway.metrics()).sum('llm_proxy_tokens_total')).toBe(0);
    },
  );

  it('counts rejections by reason, and unknown names as ""', async () => {
    const set = await stage({
      upstream: { max_concurrency: 1, backoff: 'PT1M', probe_interval: 'PT0S' },
      server: { body_limit: '2KiB' },
    });
    const hold = gate();
    set.a.next(async (_r, answer) => {
      await hold.opened;
      await answer.error(503);
    });
    const holder = set.chat();
    await set.a.chat(0);
    await set.chat().end();
    hold.open();
    await holder.end();
    await set.chat().end();
    await set.chat({ model: 'evil"} 1\nname' }).end();
    await set.chat({ model: 5 }).end();
    await set.chat({}, { body: '[]' }).end();
    await set.chat({ filler: 'x'.repeat(3000) }).end();
    const metrics = await set.gateway.metrics();
    const rejected = Object.fromEntries(
      metrics
        .find('llm_proxy_rejected_total')
        .map(({ labels, value }) => [`${labels['model']}/${labels['reason']}`, value]),
    );
    expect(rejected).toEqual({
      'm/busy': 1,
      'm/failed': 1,
      'm/cooling': 1,
      '/unknown_model': 1,
      '/bad_request': 2,
      '/too_large': 1,
    });
    expect(metrics.text).not.toContain('evil');
  });

  it('grows no label with the texts of clients', async () => {
    const set = await stage();
    await set.chat().end();
    await set.chat({ model: 'none' }).end();
    // The process's own metrics may grow meanwhile: by a kind of garbage collection that had not happened yet.
    const ours = async () =>
      (await set.gateway.metrics()).samples.filter(({ name }) => name.startsWith('llm_proxy_')).length;
    const before = await ours();
    for (let i = 0; i < 20; i++) {
      await set.chat({ model: `unknown-${i}` }).end();
      await set.gateway.get(`/nowhere-${i}`);
    }
    expect(await ours()).toBe(before);
  });
});
