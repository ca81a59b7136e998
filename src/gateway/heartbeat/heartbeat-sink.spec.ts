import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { allUpstreams, STREAM_INTERRUPTED } from '../../common/errors/catalogue.js';
import { GatewayError } from '../../common/errors/gateway-error.js';
import { streamInterrupted } from '../../common/errors/error-form.js';
import { delta, DONE } from '../../../test/support/answers.js';
import { RecordingSink } from '../../../test/support/recording-sink.js';
import { HeartbeatSink } from './heartbeat-sink.js';

const SSE = ['content-type', 'text/event-stream'];
const JSON_HEAD = ['content-type', 'application/json'];
const error = allUpstreams('busy', 1000, []);

function setUp() {
  const inner = new RecordingSink();
  const sink = new HeartbeatSink(inner, {
    afterMs: 100,
    everyMs: 50,
    headers: ['content-type', 'text/event-stream'],
    state: () => 'waiting',
  });
  return { inner, sink };
}

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  expect(vi.getTimerCount()).toBe(0);
  vi.useRealTimers();
});

describe('a sink with a heartbeat', () => {
  it('says nothing before its time, then a comment at each interval', () => {
    const { inner, sink } = setUp();
    vi.advanceTimersByTime(99);
    expect(inner.calls).toEqual([]);
    vi.advanceTimersByTime(1);
    expect([inner.status, inner.text]).toEqual([200, ': waiting\n\n']);
    vi.advanceTimersByTime(100);
    expect(inner.text).toBe(': waiting\n\n'.repeat(3));
    sink.stop();
  });

  it('an error that cannot be written ends an open stream as a break does', () => {
    const { inner, sink } = setUp();
    vi.advanceTimersByTime(100);
    const unwritable = new GatewayError({
      status: 403,
      code: 'c',
      type: 't',
      message: 'm',
      extra: { big: 1n },
    });
    expect(() => sink.error(unwritable, [])).toThrow(TypeError);
    expect(inner.text).toBe(`: waiting\n\n${streamInterrupted('own_error').toString()}`);
    expect(inner.calls.at(-1)).toBe('endInterrupted');
  });

  it.each([
    ['an answer that begins', (sink: HeartbeatSink) => sink.head(200, JSON_HEAD)],
    ['an error', (sink: HeartbeatSink) => sink.error(error, [])],
    ['an end', (sink: HeartbeatSink) => sink.end()],
    ['a break', (sink: HeartbeatSink) => sink.cut('upstream')],
    ['an interruption', (sink: HeartbeatSink) => sink.endInterrupted(STREAM_INTERRUPTED)],
  ])('is over with %s', (_name, end) => {
    const { inner, sink } = setUp();
    end(sink);
    vi.advanceTimersByTime(1000);
    expect(inner.text).not.toContain(': waiting');
  });

  it('beats between the events of a stream that says nothing yet, never inside one', () => {
    const { inner, sink } = setUp();
    sink.head(200, SSE);
    sink.write(Buffer.from(delta({ role: 'assistant' })));
    vi.advanceTimersByTime(100);
    expect(inner.text.endsWith(': waiting\n\n')).toBe(true);
    sink.write(Buffer.from('data: {"half'));
    const before = inner.text;
    vi.advanceTimersByTime(200);
    expect(inner.text).toBe(before);
    sink.write(Buffer.from('":1}\n\n'));
    vi.advanceTimersByTime(50);
    expect(inner.text).toBe(`${before}":1}\n\n: waiting\n\n`);
    sink.write(Buffer.from(delta('hi')));
    vi.advanceTimersByTime(500);
    expect(inner.text.endsWith(delta('hi'))).toBe(true);
    sink.end(Buffer.from(DONE));
  });

  it('asks for a pause as the client does, and hands its drain on', () => {
    const { inner, sink } = setUp();
    inner.room = 1;
    const drained = vi.fn();
    sink.onDrain = drained;
    sink.head(200, SSE);
    expect(sink.write(Buffer.from(delta('a')))).toBe(false);
    inner.drain();
    expect(drained).toHaveBeenCalledOnce();
    sink.end();
  });
});

describe('once it has opened the stream', () => {
  function opened() {
    const all = setUp();
    vi.advanceTimersByTime(100);
    return all;
  }
  const OPENING = ': waiting\n\n';

  it('sends no second head, and tells who answers only where that is told', () => {
    const { inner, sink } = opened();
    sink.head(200, [
      ...SSE,
      'x-llm-proxy-upstream',
      'a%20b',
      'x-llm-proxy-provider',
      'p',
      'x-llm-proxy-queue-ms',
      '5',
    ]);
    sink.flush();
    sink.write(Buffer.from(delta('a')));
    sink.end();
    expect(inner.text).toBe(
      `${OPENING}: llm-proxy upstream=a%20b provider=p attempts=1 queue_ms=5\n\n${delta('a')}`,
    );
    expect(inner.calls.filter((call) => call === 'head')).toHaveLength(1);
    const hidden = opened();
    hidden.sink.head(200, [...SSE]);
    hidden.sink.end(Buffer.from(DONE));
    expect(hidden.inner.text).toBe(`${OPENING}${DONE}`);
  });

  it.each([
    [200, JSON_HEAD, '{"a":1}', `data: {"a":1}\n\n${DONE}`],
    [204, [], '', DONE],
    [422, JSON_HEAD, '{"error":{"message":"m"}}', 'data: {"error":{"message":"m","status":422}}\n\n'],
    [422, SSE, '{"message":"m"}', /^data: \{"error":\{"message":"m",.*"status":422\}\}\n\n$/],
  ])('tells who answers before an answer that is no stream: %i %j', (status, headers, body, event) => {
    const { inner, sink } = opened();
    sink.head(status, [...headers, 'x-llm-proxy-upstream', 'a', 'x-llm-proxy-provider', 'p']);
    sink.end(body === '' ? undefined : Buffer.from(body));
    const told = `${OPENING}: llm-proxy upstream=a provider=p attempts=1 queue_ms=0\n\n`;
    expect(inner.text.startsWith(told)).toBe(true);
    const rest = inner.text.slice(told.length);
    if (typeof event === 'string') expect(rest).toBe(event);
    else expect(rest).toMatch(event);
    expect(inner.calls.filter((call) => call === 'head')).toHaveLength(1);
  });

  it('ends with an error event and no [DONE]', () => {
    const { inner, sink } = opened();
    sink.error(error, []);
    sink.error(error, []);
    sink.cut('upstream');
    expect(inner.text.match(/"status":503/g)).toHaveLength(1);
    expect(inner.calls).toEqual(['head', 'write', 'end']);
  });

  it('puts a JSON answer that comes in pieces into one event', () => {
    const { inner, sink } = opened();
    sink.head(200, JSON_HEAD);
    expect(sink.write(Buffer.from('{"a":'))).toBe(true);
    vi.advanceTimersByTime(50);
    sink.end([Buffer.from('1'), Buffer.from('}')]);
    sink.write(Buffer.from('late'));
    expect(inner.text).toBe(`${OPENING}${OPENING}data: {"a":1}\n\n${DONE}`);
  });

  it('says that a JSON answer broke, as a stream would', () => {
    const { inner, sink } = opened();
    sink.head(200, JSON_HEAD);
    sink.write(Buffer.from('{"a":'));
    sink.cut('shutting_down');
    expect(inner.text).toBe(`${OPENING}${streamInterrupted('shutting_down').toString()}`);
    expect(inner.ending).toBe('endInterrupted');
  });

  it('ends with [DONE] where the answer has no body', () => {
    const { inner, sink } = opened();
    sink.head(204, []);
    sink.end();
    expect(inner.text).toBe(`${OPENING}${DONE}`);
  });
});
