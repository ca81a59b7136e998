import { describe, expect, it } from 'vitest';
import type { ExchangeOutcome } from '../../src/contracts/index.js';
import { bearer, consumer } from '../support/consumers.js';
import { plugin, withHooks } from '../support/plugin.js';
import { ServiceProcess } from '../support/process.js';
import { MESSAGES, type Stage } from '../support/stage.js';
import { gate, waitFor } from '../support/wait-for.js';

/** A plugin in a file, with these methods and fields; it says `begun` when `onRequest` begins. */
const inFile = (members: string): string =>
  `import { RegisterInterceptor } from '${new URL('../../dist/contracts/index.js', import.meta.url).href}';
export class Waiting { ${members} }
RegisterInterceptor({ id: 'waiting' })(Waiting);`;

const processWith = (members: string, graceOf: string): Promise<ServiceProcess> =>
  ServiceProcess.listening({
    config: {
      server: { host: '127.0.0.1', port: 0, shutdown_grace: graceOf },
      plugins: [{ module: './waiting.mjs' }],
      providers: [{ id: 'pa', url: 'http://127.0.0.1:9/v1' }],
      upstreams: [{ id: 'a', provider: 'pa', model: 'real' }],
      models: [{ name: 'm', upstreams: ['a'] }],
    },
    files: { 'waiting.mjs': inFile(members) },
  });

type Fields = Readonly<Record<string, unknown>>;

const probing = { backoff: 'PT1M', probe_interval: 'PT0.03S', first_byte_timeout: 'PT0.1S' };

async function failedProbes(set: Stage): Promise<number> {
  return (await set.gateway.metrics()).sum('llm_proxy_probe_pings_total', { upstream: 'a', result: 'fail' });
}

describe('a plugin whose onAttempt never ends for a probe', () => {
  const never = gate();

  // FAULT: one such probe held the slot of the group for good: all of the group was busy for ever.
  it('keeps no slot of the group', async () => {
    const begun = gate();
    const set = await withHooks(
      { onAttempt: ({ probe }) => (probe ? (begun.open(), never.opened) : undefined) },
      {
        upstreams: 2,
        provider: { slot_group: 'g' },
        upstream: (index) => (index === 0 ? probing : {}),
        file: () => ({
          slot_groups: { g: 1 },
          models: [
            { name: 'm', upstreams: ['a'] },
            { name: 'n', upstreams: ['b'], queue: { wait: 'PT5S' } },
          ],
        }),
      },
    );
    set.a.next((_request, answer) => answer.error(503));
    await set.chat().end();
    await begun.opened;
    expect((await set.chat({ model: 'n' }).end()).status).toBe(200);
    const line = await set.gateway.logged('plugin test had not ended in onAttempt of a probe within 100ms');
    expect(line).toMatchObject({ level: 40, plugin: 'test', hook: 'onAttempt' });
    await waitFor(async () => (await failedProbes(set)) > 0, 'the probe was counted as a failed one');
    expect(set.a.probes).toEqual([]);
  });

  // FAULT: the upstream was never probed again, in later rests neither.
  it('is no reason not to probe again', async () => {
    let calls = 0;
    const signals: AbortSignal[] = [];
    const set = await withHooks(
      {
        onAttempt: ({ exchange, probe }) => {
          if (!probe) return undefined;
          signals.push(exchange.signal);
          return ++calls === 1 ? never.opened : undefined;
        },
      },
      { upstream: probing },
    );
    set.a.next((_request, answer) => answer.error(503));
    await set.chat().end();
    await set.gateway.logged('probe upstream=a ok, back in the pool');
    expect([calls, signals[0]?.aborted, await failedProbes(set)]).toEqual([2, true, 1]);
    expect((await set.gateway.metrics()).sum('llm_proxy_upstream_fail_streak')).toBe(0);
  });

  it('is called off with the rest', async () => {
    const signals: AbortSignal[] = [];
    const set = await withHooks(
      {
        onAttempt: ({ exchange, probe }) =>
          probe ? (signals.push(exchange.signal), never.opened) : undefined,
      },
      { upstream: { ...probing, backoff: { base: 'PT0.2S', cap: 'PT0.2S' }, first_byte_timeout: 'PT1M' } },
    );
    for (const rest of [1, 2]) {
      set.a.next((_request, answer) => answer.error(503));
      await set.chat().end();
      await waitFor(() => signals[rest - 1]?.aborted === true, `the probe of rest ${rest} was called off`);
    }
    expect(await failedProbes(set)).toBe(0);
  });
});

describe('a plugin whose onRequest does not end', () => {
  // FAULT: the place of the consumer stayed taken for as long as the plugin liked.
  it('is left behind by a client that leaves: the place is free, onFinish is told once', async () => {
    const waiting = gate();
    let reject: (error: Error) => void = () => {};
    const outcomes: ExchangeOutcome[] = [];
    const signals: AbortSignal[] = [];
    const set = await withHooks(
      {
        onRequest: ({ headers, signal }) => {
          if (headers['x-wait'] === undefined) return undefined;
          signals.push(signal);
          waiting.open();
          return new Promise((_resolve, rejects) => (reject = rejects));
        },
        onFinish: (_exchange, outcome) => void outcomes.push(outcome),
      },
      { file: () => ({ consumers: [consumer('alice', { max_concurrency: 1 })] }) },
    );
    const leaving = set.chat({}, { headers: { ...bearer('alice'), 'x-wait': '1' } });
    await waiting.opened;
    leaving.leave();
    await waitFor(() => outcomes.length > 0, 'the exchange was finished');
    expect(outcomes[0]).toMatchObject({ status: 0, complete: false });
    expect(signals[0]?.aborted).toBe(true);
    expect((await set.chat({}, { headers: bearer('alice') }).end()).status).toBe(200);
    reject(new Error('LATE-TEXT'));
    expect((await set.chat({}, { headers: bearer('alice') }).end()).status).toBe(200);
    expect(outcomes).toHaveLength(3);
    const left = await set.gateway.logged('plugin test had not ended in onRequest when the client left');
    expect(left.level).toBe(20);
    expect(set.gateway.lines.every(({ level }) => level < 50)).toBe(true);
  });

  // FAULT: answered as busy, with a free slot, and only when the plugin had ended.
  it('is held to the deadline of the model', async () => {
    const never = gate();
    const signals: AbortSignal[] = [];
    const seen: string[] = [];
    const set = await withHooks(
      {
        onRequest: ({ signal }) => (signals.push(signal), never.opened),
        onFinish: (_exchange, { status }) => void seen.push(String(status)),
      },
      { model: { deadline: 'PT0.1S' } },
    );
    const answer = await set.chat().end();
    expect(answer.status).toBe(503);
    expect(answer.json).toMatchObject({
      error: { code: 'deadline_exceeded', message: 'the deadline of 100ms is over', attempts: [] },
    });
    expect(answer.header('retry-after')).toBe('1');
    expect(signals[0]?.aborted).toBe(true);
    const line = await set.gateway.logged('plugin test had not ended in onRequest at the deadline of 100ms');
    expect(line.level).toBe(40);
    await set.gateway.logged('chat model=m 503 the deadline of 100ms is over (a=0/1)');
    const metrics = await set.gateway.metrics();
    expect(metrics.sum('llm_proxy_rejected_total', { model: 'm', reason: 'deadline' })).toBe(1);
    expect([seen, set.a.requests]).toEqual([['503'], []]);
  });

  // FAULT: the connection was closed without a word.
  it('gets the last words of the service', async () => {
    const service = await processWith(
      `onRequest() { process.stderr.write('begun '); return new Promise(() => {}); }
      onFinish(exchange, { status, complete }) { process.stderr.write('finished ' + status + ' ' + complete); }`,
      'PT0.3S',
    );
    const answer = service.send({ body: { model: 'm', messages: MESSAGES } });
    await waitFor(() => service.stderr.includes('begun'), 'the plugin waited');
    service.kill('SIGTERM');
    await answer.end();
    expect([answer.status, answer.json]).toMatchObject([503, { error: { code: 'shutting_down' } }]);
    expect(await service.exit()).toEqual({ code: 0, signal: null });
    expect(service.stderr).toBe('begun finished 503 true');
    const line = service.lines.find(({ msg }) => msg.includes('plugin waiting had not ended in onRequest'));
    expect(line?.msg).toContain('when the service had to end');
    expect(line?.level).toBe(40);
  });
});

describe('a plugin whose onAttempt does not end', () => {
  const never = gate();
  const resting = { backoff: 'PT1H', probe_interval: 'PT0S', max_concurrency: 1 };
  const rests = async (set: Stage) => {
    const metrics = await set.gateway.metrics();
    const of = (name: string) => metrics.sum(`llm_proxy_upstream_${name}`, { upstream: 'a' });
    return [of('fail_streak'), of('cooling_seconds'), of('inflight')];
  };

  // FAULT: an upstream whose provider was never asked rested for it.
  it.each<[what: string, limits: Fields, body: Fields, provider: Fields, told: string]>([
    ['an answer', { request_timeout: 'PT0.1S' }, {}, {}, 'request timeout after 100ms'],
    [
      'a stream',
      { first_byte_timeout: 'PT0.1S' },
      { stream: true },
      {},
      'TIMEOUT: no first byte within 100ms',
    ],
    [
      'an answer, where keys rest',
      { request_timeout: 'PT0.1S' },
      {},
      { errors: 'classified' },
      'request timeout after 100ms',
    ],
  ])('blames no upstream for %s: the next one answers', async (_what, limits, body, provider, told) => {
    const failures: (boolean | undefined)[] = [];
    const set = await withHooks(
      {
        onAttempt: ({ number }) => (number === 1 ? never.opened : undefined),
        onFailover: (_exchange, _attempt, { ours }) => void failures.push(ours),
      },
      { upstreams: 2, provider, upstream: (index) => (index === 0 ? { ...resting, ...limits } : {}) },
    );
    const answer = await set.chat(body).end();
    expect([answer.status, answer.header('x-llm-proxy-upstream')]).toEqual([200, 'b']);
    expect(await rests(set)).toEqual([0, 0, 0]);
    const line = await set.gateway.logged('upstream=a ');
    await set.gateway.logged(`upstream=a ${told}, spent in onAttempt of the plugin test → failover`);
    expect(line.msg).not.toContain('backoff');
    expect([failures, set.a.requests]).toEqual([[true], []]);
  });

  it('and is the trial of a resting upstream decides nothing', async () => {
    const set = await withHooks(
      { onAttempt: ({ exchange }) => ('x-wait' in exchange.headers ? never.opened : undefined) },
      {
        upstream: {
          recovery: 'half_open',
          backoff: { base: 'PT2S', cap: 'PT1H' },
          request_timeout: 'PT0.1S',
        },
      },
    );
    set.a.next((_request, answer) => answer.error(503));
    await set.chat().end();
    let text = '';
    await waitFor(async () => {
      text = (await set.chat({}, { headers: { 'x-wait': '1' } }).end()).text;
      return !text.includes('all_upstreams_cooling');
    }, 'a trial was let through');
    expect(text).toContain('all_upstreams_failed');
    await set.gateway.logged('trial decided nothing');
    expect((await rests(set))[0]).toBe(1);
    expect((await set.chat().end()).status).toBe(200);
    expect(await rests(set)).toEqual([0, 0, 0]);
  });

  // FAULT: told as `request timeout after 300000ms`.
  it('is held to the deadline of the model, which the log names', async () => {
    const set = await withHooks(
      { onAttempt: () => never.opened },
      { upstreams: 2, upstream: resting, model: { deadline: 'PT0.1S' } },
    );
    const answer = await set.chat().end();
    expect([answer.status, answer.header('x-llm-proxy-trail')]).toEqual([503, 'a=net_err']);
    await set.gateway.logged(
      'upstream=a deadline of 100ms is over, spent in onAttempt of the plugin test → failover',
    );
    expect(await rests(set)).toEqual([0, 0, 0]);
  });

  it('calls no further stage once it is left behind', async () => {
    const waiting = gate();
    const hold = gate();
    const called: string[] = [];
    const set = await withHooks(
      {},
      {
        plugins: [
          plugin('first', { onAttempt: () => (waiting.open(), hold.opened) }, 100),
          plugin('second', { onAttempt: () => void called.push('second') }, 200),
        ],
      },
    );
    const answer = set.chat();
    await waiting.opened;
    answer.leave();
    await set.gateway.logged('plugin first had not ended in onAttempt when the client left');
    hold.open();
    expect((await set.chat().end()).status).toBe(200);
    expect(called).toEqual(['second']);
  });
});

describe('a plugin that never closes', () => {
  // FAULT: the process went on for ever.
  it.each(['onModuleDestroy', 'beforeApplicationShutdown', 'onApplicationShutdown'])(
    '%s: the process ends all the same, and the log says what had not ended',
    async (hook) => {
      const service = await processWith(
        `keep = setInterval(() => {}, 1000);
        async onModuleDestroy() { process.stderr.write('destroyed '); }
        async onApplicationShutdown() { process.stderr.write('shut down'); }
        async ${hook}() { process.stderr.write('waits '); await new Promise(() => {}); }`,
        'PT0.1S',
      );
      service.kill('SIGTERM');
      expect(await service.exit()).toEqual({ code: 0, signal: null });
      expect(service.lines.map(({ msg }) => msg).slice(-2)).toEqual([
        expect.stringMatching(
          `server: ${hook} of the plugin waiting had not ended after \\d+ms, it is not waited for`,
        ),
        '[llm-proxy] server: ended',
      ]);
      const whole: Record<string, string> = {
        onModuleDestroy: 'waits shut down',
        beforeApplicationShutdown: 'destroyed waits shut down',
        onApplicationShutdown: 'destroyed waits ',
      };
      expect(service.stderr).toBe(whole[hook]);
    },
  );
});

describe('a plugin whose onAttempt heeds the signal of its exchange', () => {
  it('has not failed when its client leaves', async () => {
    const begun = gate();
    const set = await withHooks({
      onAttempt: async ({ exchange: { signal } }) => {
        begun.open();
        await new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => reject(new Error('heeded')));
        });
      },
    });
    const answer = set.chat();
    await begun.opened;
    answer.leave();
    await set.gateway.logged('result=cancelled');
    const metrics = await set.gateway.metrics();
    expect(metrics.sum('llm_proxy_plugin_errors_total', {})).toBe(0);
    expect(set.a.requests).toHaveLength(0);
  });
});
