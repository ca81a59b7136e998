import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { AttemptRecord } from '../../contracts/exchange.js';
import { PluginMistake } from '../../common/errors/plugin-mistake.js';
import { GatewayLog, shownTarget } from './gateway-log.js';
import { createRootLogger, type LogFormat } from './root-logger.js';

function setUp(format: LogFormat = 'json', level = 'debug') {
  const lines: string[] = [];
  const destination = { write: (line: string) => void lines.push(line) };
  const log = new GatewayLog(createRootLogger({ level, format, destination }));
  const last = () => JSON.parse(lines.at(-1) ?? '{}') as Record<string, unknown>;
  return { log, lines, last };
}

const target = { model: 'my-gpt', upstream: 'local-qwen', provider: 'local-llama' };
/** What could break, move or hide a line of a log. */
const UNSAFE = /[\p{Cc}\u2028\u2029\u202a-\u202e]/u;
const WARN = 40;
const INFO = 30;

const attempt: AttemptRecord = { upstream: 'local-qwen', provider: 'local-llama', result: 'ok' };

describe('GatewayLog', () => {
  it('says the fixed words of the specification, with the same facts as fields', () => {
    const { log, last } = setUp();
    log.claimed('r', target, '1/1');
    expect(last()['msg']).toBe(
      '[llm-proxy] chat model=my-gpt upstream=local-qwen provider=local-llama active[local-qwen]=1/1',
    );
    log.failedOver(
      'r',
      target,
      { result: '5xx', status: 503, reason: 'returned 503' },
      { restMs: 2000, resting: 'backoff', next: 'failover' },
    );
    expect(last()).toMatchObject({
      msg: '[llm-proxy] chat model=my-gpt upstream=local-qwen returned 503 → failover (backoff: rest PT2S)',
      level: WARN,
      request_id: 'r',
      result: '5xx',
      status: 503,
      rest_ms: 2000,
    });
    log.failedOver(
      'r',
      target,
      { result: 'timeout', reason: 'no first byte within 30000ms' },
      { restMs: 1000, resting: 'backoff', next: 'failover' },
    );
    expect(last()['msg']).toBe(
      '[llm-proxy] chat model=my-gpt upstream=local-qwen TIMEOUT: no first byte within 30000ms → failover (backoff: rest PT1S)',
    );
    const keyed = shownTarget('my-gpt', 'openai-big', 'openai', 'b');
    log.failedOver(
      'r',
      keyed,
      { result: '429', status: 429, class: 'rate_limited', reason: 'returned 429' },
      { restMs: 30_000, resting: 'key', next: 'next key' },
    );
    expect(last()).toMatchObject({
      msg: '[llm-proxy] chat model=my-gpt upstream=openai-big key=b returned 429 → next key (rate_limited: key rests PT30S)',
      key: 'b',
      class: 'rate_limited',
    });
    log.failedOver(
      'r',
      keyed,
      { result: '4xx', status: 404, class: 'model_gone', reason: 'returned 404' },
      { restMs: 600_000, resting: 'upstream', next: 'failover' },
    );
    expect(last()['msg']).toContain('→ failover (model_gone: upstream rests PT10M; check url and model)');
    log.closed('r', target, 'no_key', Infinity);
    expect(last()['msg']).toBe('[llm-proxy] chat model=my-gpt upstream=local-qwen closed by no_key, skipped');
    log.closed('r', target, 'cooling', 2100);
    expect(last()['msg']).toContain('upstream=local-qwen closed by cooling (~3s), skipped');
    log.skipped('r', target, 2100);
    expect(last()['msg']).toBe('[llm-proxy] chat model=my-gpt upstream=local-qwen in backoff (~3s), skipped');
    log.rejected('r', 'my-gpt', 503, 'all upstreams busy', 'local-qwen=1/1, routerai-gpt4o=4/4');
    expect(last()).toMatchObject({
      msg: '[llm-proxy] chat model=my-gpt 503 all upstreams busy (local-qwen=1/1, routerai-gpt4o=4/4)',
      level: WARN,
    });
    log.done('r', target, { result: 'ok', status: 200, durationMs: 1233.6, attempts: [attempt] }, '0/4');
    expect(last()).toMatchObject({
      msg: '[llm-proxy] chat model=my-gpt upstream=local-qwen done result=ok status=200 duration=1234ms active[local-qwen]=0/4',
      level: INFO,
    });
    log.probed('local-qwen', 'local-llama', true);
    expect(last()['msg']).toBe('[llm-proxy] probe upstream=local-qwen ok, back in the pool');
    log.probed('local-qwen', 'local-llama', false);
    expect(last()['msg']).toBe('[llm-proxy] probe upstream=local-qwen silent, stays in backoff');
  });

  it.each([
    ['ok', INFO],
    ['4xx', INFO],
    ['cancelled', INFO],
    ['net_err', WARN],
    ['5xx', WARN],
  ] as const)('ends a request of result %s at level %i', (result, level) => {
    const { log, last } = setUp();
    log.done('r', target, { result, status: 200, durationMs: 1, attempts: [attempt] }, '');
    expect(last()['level']).toBe(level);
  });

  it('tells the whole way of a request that took several attempts, in its one line', () => {
    const { log, last } = setUp();
    const way: AttemptRecord[] = [
      { upstream: 'a', provider: 'p', key: 'x', result: '429', status: 429 },
      { upstream: 'a', provider: 'p', key: 'y\n', result: 'net_err' },
      { upstream: 'b', provider: 'q', result: 'ok' },
    ];
    log.done(
      'r',
      shownTarget('m', 'b', 'q'),
      { result: 'ok', status: 200, durationMs: 5, attempts: way },
      '0/1',
    );
    const chain = 'a/x=429,a/y\\n=net_err,b=ok';
    expect(last()).toMatchObject({ chain, attempts: 3 });
    expect(last()['msg']).toMatch(/ active\[b\]=0\/1 chain=a\/x=429,a\/y\\n=net_err,b=ok$/);
    log.rejected('r', 'm', 503, 'all upstreams failed', 'b=0/1', way.slice(0, 1));
    expect(last()).toMatchObject({ chain: 'a/x=429' });
    log.rejected('r', 'm', 503, 'all upstreams busy');
    expect(last()).not.toHaveProperty('chain');
  });

  it('passes a refusal of the client at info, ours at warn', () => {
    const { log, last } = setUp();
    log.rejected('r', '', 404, 'model_not_found');
    expect(last()['level']).toBe(INFO);
    log.rejected('r', '', 503, 'shutting_down');
    expect(last()['level']).toBe(WARN);
  });

  it.each([
    ['ok', false, 'ok, back in the pool'],
    ['5xx', true, 'failed, stays in backoff'],
    ['4xx', false, 'decided nothing'],
    ['cancelled', false, 'decided nothing'],
    ['net_err', false, 'decided nothing'],
  ] as const)('says what came of a trial: %s, failed: %s', (result, failed, text) => {
    const { log, last } = setUp();
    log.claimed('r', target, '1/4', true);
    expect(String(last()['msg'])).toMatch(/active\[local-qwen\]=1\/4 trial$/);
    log.tried('r', target, result, failed);
    expect(last()['msg']).toBe(`[llm-proxy] chat model=my-gpt upstream=local-qwen trial ${text}`);
    log.probed('local-qwen', 'local-llama', true, 'trial');
    expect(last()['msg']).toBe('[llm-proxy] probe upstream=local-qwen ok, a request may try it');
  });

  it('has nothing but the summary at info', () => {
    const { log, lines } = setUp('json', 'info');
    log.claimed('r', target, '1/1');
    log.skipped('r', target, 1);
    log.probed('u', 'p', false);
    log.probed('u', 'p', true, 'trial');
    log.tried('r', target, 'ok', false);
    expect(lines).toEqual([]);
    log.done('r', target, { result: 'ok', status: 200, durationMs: 1, attempts: [attempt] }, '');
    expect(lines).toHaveLength(1);
  });

  it('says where an error happened, never what it said', () => {
    const { log, lines, last } = setUp();
    log.unexpected('r', 'an attempt', new TypeError('the prompt of a client'));
    log.pluginFailed('r', 'audit', 'onRequest', new Error('the prompt of a client'));
    log.pluginFailed('r', 'audit', 'observe', new PluginMistake('observe returned nothing'));
    expect(last()['msg']).toContain('plugin audit failed in observe: observe returned nothing');
    log.unexpected('r', 'an attempt', 'the prompt of a client');
    expect(lines.join('')).not.toContain('prompt');
    expect(last()['error']).toBe('string');
  });

  it('looks at whatever was thrown without being thrown at', () => {
    const { log, last } = setUp();
    const bad = (property: string) =>
      Object.defineProperty(new Error('x'), property, {
        get: () => {
          throw new Error('the prompt of a client');
        },
      });
    const proxy = new Proxy(new Error('x'), {
      getPrototypeOf: () => {
        throw new Error('the prompt of a client');
      },
    });
    for (const thrown of [bad('name'), bad('stack'), proxy]) {
      log.pluginFailed('r', 'audit', 'onFinish', thrown);
      expect(last()).toMatchObject({
        error: 'unreadable',
        msg: '[llm-proxy] plugin audit failed in onFinish',
      });
    }
    log.pluginFailed(
      'r',
      'audit',
      'onFinish',
      Object.assign(new Error('x'), { name: Symbol('s'), stack: 7 }),
    );
    expect(last()).toMatchObject({ error: 'Error', plugin: 'audit' });
  });

  it.each(['json', 'pretty'] as const)(
    'writes one line each, whatever a client calls its model (%s)',
    (format) => {
      const hostile = fc.oneof(
        fc.string({ unit: 'binary' }),
        fc.constantFrom(
          'a\n[llm-proxy] forged',
          '\r\n',
          '\u2028x',
          '\x1b[2Jx',
          '\u0085',
          '\u202ex',
          'x'.repeat(100_000),
        ),
      );
      fc.assert(
        fc.property(hostile, (text) => {
          const { log, lines } = setUp(format);
          log.rejected('r', text, 404, 'model_not_found');
          log.done(
            'r',
            shownTarget(text, text, text),
            { result: 'ok', status: 200, durationMs: 1, attempts: [attempt] },
            '1/1',
          );
          log.left('r', text, 5);
          for (const line of lines) {
            expect(line.length).toBeLessThan(6000);
            expect(UNSAFE.test(line.replace(/\n$/, ''))).toBe(false);
          }
          expect(lines).toHaveLength(3);
        }),
        { numRuns: 60 },
      );
    },
  );
});
