import { describe, expect, it } from 'vitest';
import { interruptionEvent } from './error-form.js';
import * as catalogue from './catalogue.js';
import { GatewayError } from './gateway-error.js';

/** One of each: a new answer of ours must be added here. */
const ALL: Record<string, GatewayError> = {
  invalidJson: catalogue.invalidJson('unexpected end at byte 3'),
  invalidBodyCoding: catalogue.invalidBodyCoding('gzip'),
  missingModel: catalogue.missingModel(),
  unknownModel: catalogue.unknownModel('x'),
  unknownPath: catalogue.unknownPath(['/chat/completions']),
  unknownMethod: catalogue.unknownMethod(),
  wrongMethod: catalogue.wrongMethod('POST'),
  unsupportedMediaType: catalogue.unsupportedMediaType(),
  unsupportedCoding: catalogue.unsupportedCoding(),
  bodyTooLarge: catalogue.bodyTooLarge(5),
  malformedRequest: catalogue.malformedRequest(),
  headersTooLarge: catalogue.headersTooLarge(),
  requestTimeout: catalogue.requestTimeout(),
  unsupportedVersion: catalogue.unsupportedVersion(),
  invalidHost: catalogue.invalidHost(),
  unsupportedTransferCoding: catalogue.unsupportedTransferCoding(),
  unknownExpectation: catalogue.unknownExpectation(),
  invalidHeader: catalogue.invalidHeader(),
  shuttingDown: catalogue.shuttingDown(),
  stateUnavailable: catalogue.stateUnavailable(),
  pluginFailed: catalogue.pluginFailed(),
  internalError: catalogue.internalError(),
  upstreamErrorTooLarge: catalogue.upstreamErrorTooLarge(422),
  upstreamErrorUnreadable: catalogue.upstreamErrorUnreadable(422),
  allUpstreams: catalogue.allUpstreams('busy', 1000, []),
  upstreamRefused: catalogue.upstreamRefused(400),
  queueRefused: catalogue.queueRefused('queue_full', 1000, []),
  cooling: catalogue.allUpstreams('cooling', 2100, []),
  failed: catalogue.allUpstreams('failed', 1000, []),
  deadlineOver: catalogue.deadlineOver(1500.4, []),
  noUsableKey: catalogue.noUsableKey([]),
  noCandidates: catalogue.noCandidates('x-llm-proxy-tier', 'must be one whole number'),
  quotaExhausted: catalogue.quotaExhausted('the quota of this consumer is used up', 90_000),
};

describe('the catalogue of errors', () => {
  it('is all here', () => {
    const makers = Object.entries(catalogue).filter(([, value]) => typeof value === 'function');
    for (const [name] of makers) expect(ALL).toHaveProperty(name);
  });

  it('has a code of its own for each', () => {
    const codes = Object.values(ALL).map(({ code }) => code);
    expect(new Set(codes).size).toBe(codes.length);
    for (const code of codes) expect(code).toMatch(/^[a-z][a-z_]+$/);
  });

  it.each(Object.entries(ALL))('%s has the form of OpenAI', (_name, error) => {
    const { error: body } = error.body();
    expect(error.status).toBeGreaterThanOrEqual(400);
    expect(body).toMatchObject({ message: error.message, code: error.code, type: error.type });
    expect(body.param === null || typeof body.param === 'string').toBe(true);
    expect(body.message.length).toBeGreaterThan(5);
    for (const [name, value] of Object.entries(error.headers)) {
      expect(name).toBe(name.toLowerCase());
      expect(value).toMatch(/^[\x20-\x7e]+$/);
    }
  });

  it.each([
    ['invalidJson', 400, 'invalid_json', null],
    ['missingModel', 400, 'missing_model', 'model'],
    ['unknownModel', 404, 'model_not_found', 'model'],
    ['bodyTooLarge', 413, 'request_too_large', null],
    ['unsupportedMediaType', 415, 'unsupported_media_type', null],
    ['unknownPath', 404, 'unknown_path', null],
    ['wrongMethod', 405, 'method_not_allowed', null],
    ['quotaExhausted', 429, 'quota_exhausted', null],
    ['shuttingDown', 503, 'shutting_down', null],
    ['deadlineOver', 503, 'deadline_exceeded', null],
    ['stateUnavailable', 503, 'state_unavailable', null],
    ['pluginFailed', 500, 'plugin_failed', null],
    ['upstreamErrorTooLarge', 422, 'upstream_error_too_large', null],
    ['upstreamErrorUnreadable', 422, 'upstream_error_unreadable', null],
  ] as const)('%s is a %i %s', (name, status, code, param) => {
    expect(ALL[name]).toMatchObject({ status, code, param });
  });

  it('names the methods that are allowed, and closes what is shut down', () => {
    expect(ALL['wrongMethod']?.headers['allow']).toBe('POST');
    expect(ALL['shuttingDown']?.headers).toMatchObject({ connection: 'close', 'retry-after': '1' });
  });
});

describe('allUpstreams', () => {
  it('says the words of the specification', () => {
    expect(ALL['allUpstreams']).toMatchObject({
      message: 'all upstreams busy',
      code: 'all_upstreams_busy',
      status: 503,
    });
    expect(ALL['cooling']).toMatchObject({
      message: 'all upstreams cooling, retry in 3s',
      code: 'all_upstreams_cooling',
    });
    expect(ALL['failed']).toMatchObject({ message: 'all upstreams failed', code: 'all_upstreams_failed' });
  });

  it.each([
    [0, '1', '1'],
    [0.2, '1', '1'],
    [1000, '1', '1000'],
    [1000.1, '2', '1001'],
    [59_999, '60', '59999'],
    [60_000, '60', '60000'],
    [3_600_000, '3600', '60000'],
  ])('rounds %d ms up, at least 1 s, the exact time at most 60000', (ms, seconds, exact) => {
    const { headers } = catalogue.allUpstreams('cooling', ms, []);
    expect(headers).toMatchObject({ 'retry-after': seconds, 'retry-after-ms': exact });
  });

  it('says that coming back is of no use, where nothing recovers within 60 s or at all', () => {
    const headersFor = (ms: number) => catalogue.allUpstreams('cooling', ms, []).headers;
    expect(headersFor(60_000)).not.toHaveProperty('x-should-retry');
    expect(headersFor(60_001)).toHaveProperty('x-should-retry', 'false');
    expect(headersFor(Infinity)).toEqual({ 'x-should-retry': 'false' });
    expect(catalogue.allUpstreams('cooling', Infinity, []).message).toBe('all upstreams cooling');
  });

  it('is a 429 where all quotas are used up, until the first window turns', () => {
    const error = catalogue.allUpstreams('quota', 86_400_000, []);
    expect(error).toMatchObject({
      status: 429,
      code: 'quota_exhausted',
      message: 'all upstreams have used up their quotas, retry in 86400s',
      headers: { 'retry-after': '86400', 'retry-after-ms': '60000' },
    });
    expect(error.body().error['attempts']).toEqual([]);
  });

  it('lists what was tried', () => {
    const attempts = [{ upstream: 'u', provider: 'p', result: '5xx', status: 503 }];
    expect(catalogue.allUpstreams('failed', 1, attempts).body().error['attempts']).toEqual(attempts);
    expect(ALL['allUpstreams']?.body().error['attempts']).toEqual([]);
  });
});

describe('STREAM_INTERRUPTED', () => {
  it('is one event with the code that clients look for', () => {
    const text = catalogue.STREAM_INTERRUPTED.toString();
    expect(text).toMatch(/^data: \{[^\n]*\}\n\n$/);
    const { error } = JSON.parse(text.slice('data: '.length)) as { error: Record<string, unknown> };
    expect(error).toMatchObject({ type: 'upstream_error', code: 'upstream_stream_interrupted', param: null });
    expect(typeof error['message']).toBe('string');
  });

  it.each([
    ['upstream', /^The upstream broke off/],
    ['timed_out', /^The time limit was reached/],
    ['client_gone', /^The client closed its side/],
    ['shutting_down', /^The gateway is shutting down/],
    ['slot_lost', /^The gateway had to give up its place/],
    ['own_error', /^An error of the gateway/],
  ] as const)('says who ended the answer (%s), in every form and under one code', (cause, words) => {
    for (const form of ['openai', 'responses', 'anthropic'] as const) {
      const text = interruptionEvent(form, 'id', 0, cause).toString();
      const told = JSON.parse(text.slice(text.indexOf('{'))) as { error?: object };
      const { message, code } = (told.error ?? told) as { message: string; code: string };
      expect(message).toMatch(words);
      expect(code).toBe('upstream_stream_interrupted');
    }
  });
});
