import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { StreamTransform } from '../contracts/stream.js';
import { completion, delta, DONE, finish } from '../../test/support/answers.js';
import { type AttemptOptions as Options, startAttempt } from '../../test/support/attempt-start.js';
import type { RecordingSink } from '../../test/support/recording-sink.js';
import { type Script, ScriptedUpstream } from '../../test/support/scripted-upstream.js';
import { gate, waitFor, within } from '../../test/support/wait-for.js';
import type { AttemptOutcome } from './attempt-outcome.js';

let provider: ScriptedUpstream;

beforeEach(async () => {
  provider = await ScriptedUpstream.start();
});

afterEach(async () => {
  await provider.stop();
});

const start = (script: Script, options: Options = {}) => startAttempt(provider, script, options);

async function outcomeOf(
  script: Script,
  options: Options = {},
): Promise<AttemptOutcome & { sink: RecordingSink }> {
  const { sink, outcome } = start(script, options);
  const ended = await within(outcome, 'the outcome');
  return { ...ended, sink };
}

const json = JSON.stringify(completion());
const stream = [delta('a'), delta('b'), finish(), DONE];

describe('AttemptRun, the table of results', () => {
  it.each<[string, Script, Options, string]>([
    ['a JSON 200', (_, a) => a.json(200, json), {}, 'ok'],
    ['a stream', (_, a) => a.sse(stream), { stream: true }, 'ok'],
    ['a stream without [DONE]', (_, a) => a.sse([delta('a')]), { stream: true }, 'ok'],
    ['a stream without a byte', (_, a) => a.sse([]), { stream: true }, 'ok'],
    ['a stream for who asked for none', (_, a) => a.sse(stream), {}, 'ok'],
    ['JSON for who asked for a stream', (_, a) => a.json(200, json), { stream: true }, 'ok'],
    ['204', (_, a) => a.head(204, {}, 'length').then(() => a.destroy()), {}, 'ok'],
    ['error: null beside nothing else', (_, a) => a.json(200, '{"error":null}'), {}, 'ok'],
    ['an error beside choices', (_, a) => a.json(200, '{"error":{},"choices":[]}'), {}, 'ok'],
    ['JSON without a content type', (_, a) => a.send(200, json), {}, 'ok'],
    ['a stream without a content type', (_, a) => a.send(200, stream.join('')), { stream: true }, 'ok'],
    [
      'another kind of JSON',
      (_, a) => a.send(200, json, { 'content-type': 'application/x+json; a=b' }),
      {},
      'ok',
    ],
    [
      'a coded body that need not be read',
      (_, a) => a.json(200, 'x', { 'content-encoding': 'gzip' }),
      {},
      'ok',
    ],
    ['400', (_, a) => a.error(400), {}, '4xx'],
    ['401', (_, a) => a.error(401), {}, '4xx'],
    ['404', (_, a) => a.error(404), {}, '4xx'],
    ['422', (_, a) => a.error(422), { stream: true }, '4xx'],
    ['408, another 4xx', (_, a) => a.error(408), {}, '4xx'],
  ])('answers %s', async (_name, script, options, result) => {
    const outcome = await outcomeOf(script, options);
    expect(outcome).toMatchObject({ result, answered: true });
    expect(outcome.failure).toBeUndefined();
    expect(outcome.sink.ending).toBe('end');
  });

  it.each<[string, Script, Options, string, number | undefined]>([
    ['429', (_, a) => a.error(429), {}, '429', 429],
    ['402', (_, a) => a.error(402), {}, '402', 402],
    ['500', (_, a) => a.error(500), {}, '5xx', 500],
    ['503 to a stream', (_, a) => a.error(503), { stream: true }, '5xx', 503],
    ['a redirect', (_, a) => a.send(302, '', { location: 'http://127.0.0.1:9/' }), {}, 'net_err', 302],
    ['304', (_, a) => a.head(304, {}, 'length').then(() => a.destroy()), {}, 'net_err', 304],
    ['a reset before the head', (_, a) => a.reset(), {}, 'net_err', undefined],
    ['a close before the head', (_, a) => a.destroy(), {}, 'net_err', undefined],
    ['no HTTP', (_, a) => a.raw('hello\r\n\r\n'), {}, 'net_err', undefined],
    [
      'a reset behind the head',
      (_, a) => a.sseHead().then(() => a.reset()),
      { stream: true },
      'net_err',
      200,
    ],
    ['an HTML page', (_, a) => a.send(200, '<p>', { 'content-type': 'text/html' }), {}, '5xx', 200],
    [
      'an HTML page to a stream',
      (_, a) => a.send(200, '<p>', { 'content-type': 'text/html' }),
      { stream: true },
      '5xx',
      200,
    ],
    ['a page without a type', (_, a) => a.send(200, ' <p>'), {}, '5xx', 200],
    ['an error object', (_, a) => a.json(200, '{"error":{"message":"x"}}'), {}, '5xx', 200],
    [
      'an error object to a stream',
      (_, a) => a.json(200, '{"error":{"message":"x"}}'),
      { stream: true },
      '5xx',
      200,
    ],
    ['an error beside choices: null', (_, a) => a.json(200, '{"error":"x","choices":null}'), {}, '5xx', 200],
    ['half a JSON that ends cleanly', (_, a) => a.json(200, json.slice(0, 40)), {}, 'net_err', 200],
    [
      'half a JSON without a length',
      async (_, a) => {
        await a.head(200, { 'content-type': 'application/json' }, 'close');
        await a.end(json.slice(0, 40));
      },
      {},
      'net_err',
      200,
    ],
    ['an empty JSON answer', (_, a) => a.json(200, ''), {}, 'net_err', 200],
    ['no body at all for who asked for no stream', (_, a) => a.send(200, ''), {}, 'net_err', 200],
    [
      'an error event for who asked for no stream',
      (_, a) => a.sse([`data: {"error":{"message":"x"}}\n\n`]),
      {},
      '5xx',
      200,
    ],
    [
      'a broken coding that must be read',
      (_, a) => a.sse([Buffer.from('no gzip')], { 'content-encoding': 'gzip' }),
      {},
      'net_err',
      200,
    ],
    [
      'an unknown coding that must be read',
      (_, a) => a.sse(['x'], { 'content-encoding': 'lzma' }),
      {},
      'net_err',
      200,
    ],
    [
      'a coding cut short that must be read',
      (_, a) => a.sse([gzipSync(stream.join('')).subarray(0, 40)], { 'content-encoding': 'gzip' }),
      {},
      'net_err',
      200,
    ],
    [
      'a 4xx that breaks',
      async (_, a) => {
        await a.head(400, { 'content-length': '100' }, 'length');
        await a.write('{');
        a.destroy();
      },
      {},
      'net_err',
      400,
    ],
  ])('fails over after %s', async (_name, script, options, result, status) => {
    const outcome = await outcomeOf(script, options);
    expect(outcome).toMatchObject({ result, answered: false, status: 0 });
    expect(outcome.failure).toMatchObject({ result });
    expect(outcome.failure?.status).toBe(status);
    expect(outcome.attempt).toBeDefined();
    expect(outcome.sink.calls).toEqual([]);
  });

  it('tells what Retry-After asked for', async () => {
    const outcome = await outcomeOf((_, a) => a.error(429, { 'retry-after': '7' }));
    expect(outcome.failure?.retryAfterMs).toBe(7000);
  });

  it('is refused where nobody listens', async () => {
    const outcome = await outcomeOf(() => {}, { url: 'http://127.0.0.1:1/v1' });
    expect(outcome).toMatchObject({ result: 'net_err', answered: false });
  });
});

describe('AttemptRun, an answer that could not be written', () => {
  it.each<[string, 'client_gone' | Error, string, number]>([
    ['the client is gone', 'client_gone', 'cancelled', 0],
    ['the network refused it', new Error('EINVAL'), 'net_err', 1],
  ])('is never ok: %s', async (_name, refused, result, crashes) => {
    for (const script of [
      (_: unknown, a: Parameters<Script>[1]) => a.sse(stream),
      (_: unknown, a: Parameters<Script>[1]) => a.json(200, json),
    ]) {
      const run = start(script, { stream: true });
      run.sink.refused = refused;
      expect(await within(run.outcome, 'the outcome')).toMatchObject({ result, answered: true });
      expect(run.crashes).toHaveLength(crashes);
    }
  });
});

describe('AttemptRun, the commit', () => {
  it('sends the head of a stream with its first body byte, not before', async () => {
    const hold = gate();
    const { sink, outcome } = start(
      async (_, a) => {
        await a.sseHead();
        await hold.opened;
        await a.write(': hello\n\n');
        await a.end(DONE);
      },
      { stream: true },
    );
    await provider.chat(0);
    for (let i = 0; i < 20; i++) await new Promise((resolve) => setTimeout(resolve, 1));
    expect(sink.calls).toEqual([]);
    hold.open();
    await outcome;
    expect(sink.text).toBe(`: hello\n\n${DONE}`);
    expect(sink.header('x-accel-buffering')).toBe('no');
    expect(sink.header('x-llm-proxy-attempts')).toBe('1');
  });

  it('says in band that a stream broke, and ends it without [DONE]', async () => {
    const outcome = await outcomeOf(
      async (_, a) => {
        await a.sseHead();
        await a.write(`${delta('a')}data: {"half`);
        await waitForText(() => a.reset());
      },
      { stream: true },
    );
    expect(outcome).toMatchObject({ result: 'net_err', answered: true, status: 200 });
    expect(outcome.sink.ending).toBe('endInterrupted');
    expect(outcome.sink.text).toContain('\n\ndata: {"error"');
    expect(outcome.sink.text).not.toContain('[DONE]');
  });

  it('pipes a JSON answer beyond 8 MiB, and breaks the connection where it breaks', async () => {
    const outcome = await outcomeOf(async (_, a) => {
      await a.head(200, { 'content-type': 'application/json' });
      await a.write(`{"a":"${'x'.repeat(9 * 1024 * 1024)}`);
      await waitForText(() => a.reset());
    });
    expect(outcome).toMatchObject({ result: 'net_err', answered: true });
    expect(outcome.sink.calls[0]).toBe('head');
    expect(outcome.sink.ending).toBe('cut');
  });
});

describe('AttemptRun, its timers', () => {
  it('fails a stream without a byte in time, counted from the start of the attempt', async () => {
    const outcome = await outcomeOf((_, a) => a.sseHead(), { stream: true, firstByte: 'PT0.05S' });
    expect(outcome).toMatchObject({ result: 'timeout', answered: false });
    expect(outcome.failure?.reason).toBe('no first byte within 50ms');
    await waitFor(() => provider.last.aborted, 'the provider saw the close');
  });

  it.each([
    ['a plain answer', { firstByte: 'PT0.03S' }],
    [
      'a client that asked for a stream, which a patch took away',
      { stream: true, streamAsked: false, firstByte: 'PT0.03S' },
    ],
    ['a window of 0', { stream: true, firstByte: 'PT0S' }],
  ])('has no first-byte window for %s', async (_name, options) => {
    const outcome = await outcomeOf(async (_, a) => {
      await new Promise((resolve) => setTimeout(resolve, 120));
      await a.json(200, json);
    }, options);
    expect(outcome.result).toBe('ok');
  });

  it('takes a comment as the first byte, and then gives the stream its whole time', async () => {
    const outcome = await outcomeOf(
      async (_, a) => {
        await a.sseHead();
        await a.write(': hello\n\n');
        await new Promise((resolve) => setTimeout(resolve, 350));
        await a.end(DONE);
      },
      { stream: true, firstByte: 'PT0.2S' },
    );
    expect(outcome.result).toBe('ok');
  });

  it('ends the exchange when its whole time is over: before the first byte, and in the middle', async () => {
    const before = await outcomeOf(() => {}, { timeout: 'PT0.05S' });
    expect(before).toMatchObject({ result: 'net_err', answered: false });
    const midway = await outcomeOf(
      async (_, a) => {
        await a.sseHead();
        await a.write(delta('a'));
      },
      { stream: true, timeout: 'PT0.1S' },
    );
    expect(midway).toMatchObject({ result: 'net_err', answered: true });
    expect(midway.sink.ending).toBe('endInterrupted');
  });

  it('looks at the socket before it judges where the process itself was blocked', async () => {
    const { sink, outcome } = start((_, a) => a.sse([delta('a'), DONE]), {
      stream: true,
      firstByte: 'PT0.15S',
    });
    await provider.chat(0);
    const until = performance.now() + 300;
    while (performance.now() < until);
    expect((await outcome).result).toBe('ok');
    expect(sink.text).toContain('[DONE]');
  });
});

describe('AttemptRun, given up', () => {
  it('closes the upstream when the client leaves, at any moment', async () => {
    const waiting = start(() => {}, { stream: true });
    await provider.chat(0);
    waiting.exchange.giveUp('client_gone');
    expect(await waiting.outcome).toMatchObject({ result: 'cancelled', answered: false, status: 0 });
    const streaming = start((_, a) => a.sseHead().then(() => a.write(delta('a'))), { stream: true });
    await waitFor(() => streaming.sink.text !== '', 'the first event came');
    streaming.exchange.giveUp('client_gone');
    expect(await streaming.outcome).toMatchObject({ result: 'cancelled', answered: true });
    expect(streaming.sink.text).toContain('The client closed its side of the connection');
    await waitFor(() => provider.requests.every(({ aborted }) => aborted), 'the provider saw both closes');
  });

  it('tells a running stream that the service ends', async () => {
    const { sink, exchange, outcome } = start((_, a) => a.sseHead().then(() => a.write(delta('a'))), {
      stream: true,
    });
    await waitFor(() => sink.text !== '', 'the first event came');
    exchange.giveUp('shutting_down');
    const settled = await outcome;
    expect(settled).toMatchObject({ answered: true, result: 'net_err' });
    expect(settled.failure).toBeUndefined();
    expect(sink.ending).toBe('endInterrupted');
  });
});

describe('AttemptRun, errors of this side', () => {
  const crashed = { result: 'cancelled', answered: false, crash: { error: { message: 'plugin' } } };
  const throwing = (where: 'push' | 'flush' | 'whole'): StreamTransform => ({
    needles: null,
    push: (event, emit) => {
      if (where === 'push') throw new Error('plugin');
      emit(event);
    },
    flush: () => {
      if (where === 'flush') throw new Error('plugin');
    },
    whole: () => {
      if (where === 'whole') throw new Error('plugin');
    },
  });

  it.each([false, true])(
    'gives the error where a transform throws on a JSON answer (coded: %s)',
    async (coded) => {
      const headers = {
        'content-type': 'application/json',
        ...(coded ? { 'content-encoding': 'gzip' } : {}),
      };
      const script: Script = (_, a) => a.send(200, coded ? gzipSync(json) : json, headers);
      const { outcome } = start(script, { transforms: [throwing('whole')] });
      expect(await within(outcome, 'the outcome', 2000)).toMatchObject(crashed);
    },
  );

  const streamed =
    (coded: boolean): Script =>
    (_, a) => {
      const text = stream.join('');
      return coded ? a.sse([gzipSync(text)], { 'content-encoding': 'gzip' }) : a.sse([text]);
    };

  it.each([false, true])(
    'gives the error where a transform throws before the first byte of a stream (coded: %s)',
    async (coded) => {
      const { sink, outcome } = start(streamed(coded), { stream: true, transforms: [throwing('push')] });
      expect(await within(outcome, 'the outcome', 2000)).toMatchObject(crashed);
      expect(sink.ending).not.toBe('endInterrupted');
    },
  );

  it.each([false, true])(
    'tells a client in band where a transform throws on a stream (coded: %s)',
    async (coded) => {
      const { sink, outcome } = start(streamed(coded), { stream: true, transforms: [throwing('flush')] });
      expect(await within(outcome, 'the outcome', 2000)).toMatchObject({ answered: true });
      expect(sink.ending).toBe('endInterrupted');
    },
  );
});

/** Gives what was written time to be read: a reset throws unread bytes away. */
async function waitForText(then: () => void): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 60));
  then();
}
