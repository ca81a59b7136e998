import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import type { UpstreamHeaders } from '../../common/http/response-headers.js';
import { CHAT, type Operation } from '../../contracts/operation.js';
import type { StreamTransform } from '../../contracts/stream.js';
import { completion, delta, DONE, finish } from '../../../test/support/answers.js';
import { RecordingHost } from '../../../test/support/recording-host.js';
import { waitFor } from '../../../test/support/wait-for.js';
import { chooseReader } from './choose-reader.js';

const MIB = 1024 * 1024;
const json = JSON.stringify(completion());
const unended = [delta('a'), delta('b'), finish()].join('');
const stream = unended + DONE;

const passing: StreamTransform = {
  needles: null,
  push: (event, emit) => emit(event),
  flush: () => {},
  whole: () => {},
};
const renaming: StreamTransform = {
  ...passing,
  push: (event, emit) => emit(event.withData([Buffer.from(event.data?.replace('"a"', '"A"') ?? '')])),
  whole: (answer) => answer.set('changed', true),
};

interface Given {
  readonly status?: number;
  readonly headers?: UpstreamHeaders;
  readonly body?: string | Buffer;
  readonly clientWantsStream?: boolean;
  readonly streamAsked?: boolean;
  readonly transforms?: readonly StreamTransform[];
  /** Breaks off instead of ending. */
  readonly breaks?: boolean;
  readonly secret?: string;
  readonly operation?: Operation;
}

async function read(given: Given): Promise<RecordingHost> {
  const host = new RecordingHost(given.status ?? 200, given.headers ?? {}, given.transforms ?? []);
  const { secret } = given;
  const reader = chooseReader(host, {
    clientWantsStream: given.clientWantsStream ?? false,
    streamAsked: given.streamAsked ?? given.clientWantsStream ?? false,
    barrier: false,
    continuation: null,
    maskBytes: (bytes) =>
      secret && bytes.includes(secret) ? Buffer.from(bytes.toString().replace(secret, '***')) : bytes,
    wallClockMs: () => 0,
    classify: null,
    operation: given.operation ?? CHAT,
    requestId: 'req',
  });
  const body = Buffer.from((given.body ?? '') as string);
  if (body.length > 0) reader.data(body);
  // An attempt that has its verdict aborts the call: its reader hears of no end.
  if (given.breaks) reader.broken({ result: 'net_err', reason: 'reset' });
  else if (!host.verdicts.some((verdict) => verdict !== 'commit')) reader.end();
  await waitFor(() => host.verdicts.some((verdict) => verdict !== 'commit'), 'a verdict');
  return host;
}

const type = (value: string, more: UpstreamHeaders = {}): UpstreamHeaders => ({
  'content-type': value,
  ...more,
});
const sse = type('text/event-stream; charset=utf-8');
const isJson = type('application/json');
const coded = { 'content-encoding': 'gzip' };

describe('chooseReader, answers that pass', () => {
  it('sends a JSON answer with its length, its bytes untouched', async () => {
    const text = json.replace('{', '{ "n": 1.0,  "big":12345678901234567890,');
    const host = await read({ headers: isJson, body: text });
    expect(host.verdicts).toEqual(['commit', 'ok']);
    expect(host.sink.text).toBe(text);
    expect(host.commitOptions).toMatchObject({
      kind: 'json',
      bodyChanged: false,
      contentLength: text.length,
    });
  });

  it('sends a changed JSON answer with its new length', async () => {
    const host = await read({ headers: isJson, body: json, transforms: [renaming] });
    expect(JSON.parse(host.sink.text)).toMatchObject({ changed: true });
    expect(host.commitOptions).toMatchObject({ bodyChanged: true, contentLength: host.sink.text.length });
  });

  it('passes JSON to who asked for a stream', async () => {
    const host = await read({ headers: isJson, body: json, clientWantsStream: true });
    expect([host.sink.text, ...host.verdicts]).toEqual([json, 'commit', 'ok']);
  });

  it.each([
    ['data: {"op', ['fail net_err']],
    ['data: {"choices":[{"index":0,"delta":{"content":"!"}}]}', ['commit', 'ok']],
    ['data: [DONE]', ['commit', 'ok']],
  ])('joins no stream that ends inside an event: %j', async (last, verdicts) => {
    const whole = 'data: {"choices":[{"index":0,"delta":{"content":"half"}}]}\n\n';
    const host = await read({ headers: sse, body: whole + last });
    expect(host.verdicts).toEqual(verdicts);
  });

  it('joins nothing that comes behind [DONE]', async () => {
    const body = `${delta('Hel')}${DONE}${delta('MORE')}data: {"broken\n\ndata: {"half`;
    const host = await read({ headers: sse, body });
    expect(host.verdicts).toEqual(['commit', 'ok']);
    expect(JSON.parse(host.sink.text)).toMatchObject({ choices: [{ message: { content: 'Hel' } }] });
  });

  it('joins a stream for who asked for none', async () => {
    const host = await read({ headers: sse, body: stream });
    expect(JSON.parse(host.sink.text)).toMatchObject({
      object: 'chat.completion',
      choices: [{ index: 0, message: { role: 'assistant', content: 'ab' }, finish_reason: 'stop' }],
    });
    expect(host.commitOptions?.contentType).toMatch(/^application\/json/);
  });

  it('passes and changes streams', async () => {
    expect((await read({ headers: sse, body: stream, clientWantsStream: true })).sink.text).toBe(stream);
    const changed = await read({
      headers: sse,
      body: stream,
      clientWantsStream: true,
      transforms: [renaming],
    });
    expect(changed.sink.text).toContain('"A"');
    expect(changed.commitOptions).toMatchObject({ kind: 'sse', bodyChanged: true });
  });

  it('decodes what must be read, and passes with its coding what need not', async () => {
    const read2 = await read({
      headers: type('application/json', coded),
      body: gzipSync(json),
      transforms: [passing],
    });
    expect(read2.sink.text).toBe(json);
    expect(read2.commitOptions?.bodyChanged).toBe(true);
    const bytes = gzipSync(json);
    const passed = await read({ headers: type('application/json', coded), body: bytes });
    expect(Buffer.concat(passed.sink.pieces).equals(bytes)).toBe(true);
    expect(passed.commitOptions?.bodyChanged).toBe(false);
    const streamed = await read({
      headers: { ...sse, ...coded },
      body: gzipSync(stream),
      clientWantsStream: true,
      transforms: [passing],
    });
    expect(streamed.sink.text).toBe(stream);
    const joined = await read({ headers: { ...sse, ...coded }, body: gzipSync(stream) });
    expect(joined.verdicts).toEqual(['commit', 'ok']);
  });

  it('does not inspect a coded body that nobody must read: an error in it passes', async () => {
    const host = await read({ headers: type('application/json', coded), body: gzipSync('{"error":1}') });
    expect(host.verdicts).toEqual(['commit', 'ok']);
  });

  it('names the type that it found out by itself', async () => {
    expect((await read({ body: ` ${json}` })).commitOptions?.contentType).toBe('application/json');
    const host = await read({ body: stream, clientWantsStream: true });
    expect(host.commitOptions).toMatchObject({ kind: 'sse', contentType: 'text/event-stream' });
    expect(host.sink.text).toBe(stream);
  });

  it.each([204, 205])('takes %i without a body as an answer', async (status) => {
    expect((await read({ status })).verdicts).toEqual(['commit', 'ok']);
  });

  it('takes a stream without a byte as an empty answer', async () => {
    for (const headers of [sse, {}]) {
      const host = await read({ headers, clientWantsStream: true });
      expect(host.verdicts).toEqual(['commit', 'ok']);
      expect(host.sink.text).toBe('');
    }
  });

  it('takes whole JSON that is no object as it is', async () => {
    expect((await read({ headers: isJson, body: ' [1, 2]' })).sink.text).toBe(' [1, 2]');
  });

  it('pipes JSON beyond 8 MiB', async () => {
    const text = `{"a":"${'x'.repeat(8 * MIB)}"}`;
    const host = await read({ headers: isJson, body: text });
    expect(host.verdicts).toEqual(['commit', 'ok']);
    expect(host.sink.text.length).toBe(text.length);
    expect(host.commitOptions?.contentLength).toBeUndefined();
  });

  it('reads JSON beyond 8 MiB that must be read', async () => {
    const text = `{"a":"${'x'.repeat(9 * MIB)}"}`;
    const host = await read({ headers: isJson, body: text, transforms: [renaming] });
    expect(host.sink.text.endsWith('"changed":true}')).toBe(true);
  });
});

describe('chooseReader, failures', () => {
  it.each<[string, Given, string]>([
    ['429', { status: 429 }, 'fail 429'],
    ['402', { status: 402 }, 'fail 402'],
    ['500', { status: 500 }, 'fail 5xx'],
    ['599', { status: 599 }, 'fail 5xx'],
    ['300', { status: 300 }, 'fail net_err'],
    ['307', { status: 307 }, 'fail net_err'],
    ['HTML', { headers: type('text/html'), body: '<p>' }, 'fail 5xx'],
    ['plain text', { headers: type('text/plain'), body: json }, 'fail 5xx'],
    ['untyped text', { body: 'oops' }, 'fail 5xx'],
    ['an error object', { headers: isJson, body: '{"error":{}}' }, 'fail 5xx'],
    ['an error text', { headers: isJson, body: '{"error":"x"}' }, 'fail 5xx'],
    ['an untyped error object', { body: '{"error":{}}' }, 'fail 5xx'],
    [
      'a coded error object that must be read',
      { headers: type('application/json', coded), body: gzipSync('{"error":1}'), transforms: [passing] },
      'fail 5xx',
    ],
    ['cut JSON', { headers: isJson, body: json.slice(0, -1) }, 'fail net_err'],
    ['cut JSON that is no object', { headers: isJson, body: '[1,' }, 'fail net_err'],
    [
      'cut JSON to a stream',
      { headers: isJson, body: json.slice(0, -1), clientWantsStream: true },
      'fail net_err',
    ],
    ['nothing at all', {}, 'fail net_err'],
    ['a break before the end', { headers: isJson, body: json, breaks: true }, 'fail net_err'],
    ['a break in a stream that is joined', { headers: sse, body: unended, breaks: true }, 'fail net_err'],
    [
      'a break before the first byte of a stream',
      { headers: sse, clientWantsStream: true, breaks: true },
      'fail net_err',
    ],
    ['a joined stream of what is no chunk', { headers: sse, body: 'data: x\n\n' }, 'fail net_err'],
    [
      'a joined stream with an event that is cut',
      {
        headers: sse,
        body: `${delta('a')}data: {"choices":[{"delta":{"content":"b"}}\n\n${delta('c')}${DONE}`,
      },
      'fail net_err',
    ],
    [
      'a joined stream with an event that is too deep',
      {
        headers: sse,
        body: `${delta('a')}data: {"x":${'['.repeat(11_000)}${']'.repeat(11_000)}}\n\n${DONE}`,
      },
      'fail net_err',
    ],
    [
      'a joined stream with an error',
      { headers: sse, body: 'data: {"error":{"message":"x"}}\n\n' },
      'fail 5xx',
    ],
    ['a broken coding', { headers: { ...sse, ...coded }, body: 'x' }, 'fail net_err'],
    ['an unknown coding', { headers: { ...sse, 'content-encoding': 'lzma' }, body: 'x' }, 'fail net_err'],
    ['two codings', { headers: { ...sse, 'content-encoding': 'gzip, br' }, body: 'x' }, 'fail net_err'],
    [
      'an event of over 16 MiB in a joined stream',
      { headers: sse, body: `data: ${'x'.repeat(17 * MIB)}` },
      'fail net_err',
    ],
    [
      'JSON of over 64 MiB that must be read',
      { headers: isJson, body: Buffer.alloc(65 * MIB, 0x20), transforms: [passing] },
      'fail net_err',
    ],
  ])('%s', async (_name, given, verdict) => {
    const host = await read(given);
    expect(host.verdicts).toEqual([verdict]);
    expect(host.sink.calls).toEqual([]);
  });

  it('reads the body of a failed answer to its end, so that the connection serves again, but not a large one', async () => {
    const host = new RecordingHost(503);
    const options = {
      clientWantsStream: false,
      streamAsked: false,
      barrier: false,
      continuation: null,
      maskBytes: (bytes: Buffer) => bytes,
      wallClockMs: () => 0,
      classify: null,
      operation: CHAT,
      requestId: 'req',
    };
    const reader = chooseReader(host, options);
    reader.data(Buffer.alloc(1000));
    expect(host.verdicts).toEqual([]);
    reader.data(Buffer.alloc(MIB));
    expect(host.verdicts).toEqual(['fail 5xx']);
    reader.end();
    expect(host.verdicts).toHaveLength(1);
  });

  it('fails by itself where the body of a failed answer never ends', async () => {
    const host = new RecordingHost(503);
    chooseReader(host, {
      clientWantsStream: false,
      streamAsked: false,
      barrier: false,
      continuation: null,
      maskBytes: (bytes) => bytes,
      wallClockMs: () => 0,
      classify: null,
      operation: CHAT,
      requestId: 'req',
    });
    await waitFor(() => host.verdicts.length > 0, 'a verdict');
    expect(host.verdicts).toEqual(['fail 5xx']);
  });
});

describe('chooseReader, 4xx', () => {
  it('passes status and body as they are', async () => {
    const host = await read({ status: 422, headers: type('text/plain'), body: 'no such thing' });
    expect(host.verdicts).toEqual(['commit', '4xx']);
    expect(host.sink.status).toBe(422);
    expect(host.sink.text).toBe('no such thing');
    expect(host.commitOptions).toMatchObject({ bodyChanged: false, contentLength: 13 });
  });

  it('masks a copy of our key, also in a coded body', async () => {
    const plain = await read({ status: 401, body: 'bad key sk-1234!', secret: 'sk-1234' });
    expect(plain.sink.text).toBe('bad key ***!');
    expect(plain.commitOptions).toMatchObject({ bodyChanged: true, contentLength: 12 });
    const zipped = await read({
      status: 401,
      headers: coded,
      body: gzipSync('bad key sk-1234!'),
      secret: 'sk-1234',
    });
    expect(zipped.sink.text).toBe('bad key ***!');
  });

  it('replaces one of over 1 MiB, and passes one of just 1 MiB', async () => {
    const host = await read({ status: 400, body: Buffer.alloc(MIB + 1, 0x61) });
    expect(host.verdicts).toEqual(['commit', '4xx']);
    expect(JSON.parse(host.sink.text)).toMatchObject({ error: { type: 'upstream_error', param: null } });
    expect((await read({ status: 400, body: Buffer.alloc(MIB, 0x61) })).sink.text.length).toBe(MIB);
  });

  it('answers once where a large one is coded', async () => {
    const host = await read({ status: 400, headers: coded, body: gzipSync(Buffer.alloc(8 * MIB, 0x61)) });
    for (let i = 0; i < 20; i++) await new Promise((resolve) => setTimeout(resolve, 2));
    expect(host.verdicts.filter((verdict) => verdict === 'commit')).toHaveLength(1);
    expect(host.sink.calls).toEqual(['head', 'end']);
  });

  it('fails over where it breaks', async () => {
    expect((await read({ status: 400, body: 'x', breaks: true })).verdicts).toEqual(['fail net_err']);
  });
});

describe('chooseReader, breaks behind the commit', () => {
  it('closes the open event, sends what was held back, then the error event', async () => {
    const holding: StreamTransform = {
      ...passing,
      flush: (emit) => emit(HELD),
    };
    const HELD = (await import('../../common/sse/sse-event.js')).SseEvent.of('held');
    const cut = `${delta('a')}data: {"half`;
    const plain = await read({ headers: sse, body: cut, clientWantsStream: true, breaks: true });
    expect(plain.verdicts).toEqual(['commit', 'interrupted net_err']);
    expect(plain.sink.text).toMatch(
      /data: \{"half\n\ndata: \{"error":.*upstream_stream_interrupted.*\}\n\n$/s,
    );
    const held = await read({
      headers: sse,
      body: cut,
      clientWantsStream: true,
      breaks: true,
      transforms: [holding],
    });
    expect(held.sink.text).toMatch(/data: held\n\ndata: \{"error":/);
    expect(held.sink.text).not.toContain('half');
  });

  it('breaks the connection of an opaque stream and of a piped JSON answer', async () => {
    const opaque = await read({
      headers: { ...sse, ...coded },
      body: gzipSync(stream),
      clientWantsStream: true,
      breaks: true,
    });
    expect([opaque.sink.ending, ...opaque.verdicts]).toEqual(['cut', 'commit', 'interrupted net_err']);
    const piped = await read({ headers: isJson, body: Buffer.alloc(9 * MIB, 0x20), breaks: true });
    expect(piped.sink.ending).toBe('cut');
  });

  it('takes an event of over 16 MiB that must be read as a break, and passes one that need not', async () => {
    const body = `${delta('a')}data: ${'x'.repeat(17 * MIB)}\n\n`;
    const broken = await read({ headers: sse, body, clientWantsStream: true, transforms: [passing] });
    expect(broken.verdicts).toEqual(['commit', 'interrupted net_err']);
    const passed = await read({ headers: sse, body, clientWantsStream: true });
    expect(passed.verdicts).toEqual(['commit', 'ok']);
  });
});
