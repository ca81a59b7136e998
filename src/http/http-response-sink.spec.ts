import { randomBytes } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { fastify } from 'fastify';
import { describe, expect, it } from 'vitest';
import { allUpstreams, STREAM_INTERRUPTED } from '../common/errors/catalogue.js';
import { GatewayError, type GatewayErrorOptions } from '../common/errors/gateway-error.js';
import type { RawAnswer } from '../../test/support/raw-client.js';
import { sinkScene } from '../../test/support/sink-scene.js';
import { waitFor } from '../../test/support/wait-for.js';
import { HttpResponseSink } from './http-response-sink.js';

const scene = sinkScene();
const { opened, one, answering: ANSWERING } = scene;

describe('HttpResponseSink', () => {
  const fine = { status: 403, code: 'c', type: 't', message: 'm' };
  const unwritable: [string, GatewayErrorOptions][] = [
    ...[99, 100, 101, 200, 204, 399, 600, 1000, 403.5, NaN].map((status): [string, GatewayErrorOptions] => [
      `status ${status}`,
      { ...fine, status },
    ]),
    ['a line feed in a header', { ...fine, headers: { 'x-a': 'a\nb' } }],
    ['letters that HTTP cannot carry', { ...fine, headers: { 'x-a': 'Команда' } }],
    ['a name of no header', { ...fine, headers: { 'x a': 'b' } }],
    ['a header without a value', { ...fine, headers: { 'x-a': undefined as never } }],
    ['what JSON cannot hold', { ...fine, extra: { big: 1n } }],
  ];
  it.each(unwritable)(
    'answers 500 in place of an error that cannot be written: %s',
    async (_what, options) => {
      const { sinks, answers } = await opened(2);
      expect(() => sinks[0]?.error(new GatewayError(options), ['x-mine', 'b'])).toThrow();
      sinks[1]?.head(200, []);
      sinks[1]?.end(Buffer.from('next'));
      const [first, second] = (await Promise.all(answers.map((answer) => answer.end()))) as [
        RawAnswer,
        RawAnswer,
      ];
      expect([first.status, first.ending, first.header('x-request-id')]).toEqual([500, 'complete', 'r1']);
      expect(first.json).toMatchObject({ error: { code: 'internal_error' } });
      expect([second.status, second.text]).toEqual([200, 'next']);
    },
  );

  it('sends head, pieces and end, with the headers of the edge', async () => {
    const { sink, answer } = await one();
    sink.head(201, ['content-type', 'a/b']);
    sink.write(Buffer.from('a'));
    sink.write([Buffer.from('b'), Buffer.from('c')]);
    sink.end([Buffer.from('d'), Buffer.from('e')]);
    await answer.end();
    expect([answer.status, answer.text, answer.ending]).toEqual([201, 'abcde', 'complete']);
    expect(answer.header('x-request-id')).toBe('r1');
  });

  it('sends a million pieces that come at once', async () => {
    const { sink, answer } = await one();
    sink.head(200, []);
    sink.write(Array.from({ length: 400_000 }, () => Buffer.from('x')));
    sink.end(Array.from({ length: 600_000 }, () => Buffer.from('y')));
    expect(sink.refused).toBeNull();
    await answer.end();
    expect([answer.size, answer.ending]).toEqual([1_000_000, 'complete']);
  });

  it('knows at once that the network takes nothing of an answer', async () => {
    const { sink } = await one();
    const response = scene.responses[0] as ServerResponse;
    sink.head(200, []);
    sink.write(Buffer.from('a'));
    // More pieces than a socket takes at once.
    for (let i = 0; i < 400_000; i++) response.write('x');
    sink.end(Buffer.from('z'));
    expect(sink.refused).toMatchObject({ code: 'EINVAL' });
  });

  it.each([
    ['none', []],
    ['one byte', [1]],
    ['small ones', [1, 2, 15, 16, 255, 256, 4095, 4096]],
    ['small and large ones', [4096, 4097, 1, 70_000, 3, 4097, 4096]],
    ['an empty one between', [5, 0, 5]],
    ['more than a socket takes at once', Array.from({ length: 2000 }, (_, i) => (i * 7) % 4096)],
  ])('frames every chunk: %s', async (_name, sizes) => {
    const { sink, answer } = await one();
    const pieces = sizes.map((size) => randomBytes(size));
    sink.head(200, []);
    for (const piece of pieces) sink.write(piece);
    sink.end();
    await answer.end();
    expect(answer.ending).toBe('complete');
    expect(answer.body.equals(Buffer.concat(pieces))).toBe(true);
  });

  it('sends what comes in one turn together, and what comes in several turns at once', async () => {
    const { sink, answer } = await one();
    const { socket } = scene.responses[0] as ServerResponse;
    sink.head(200, []);
    sink.write(Buffer.from('head'));
    await answer.saw('head');
    let writes = 0;
    const count = (name: '_write' | '_writev') => {
      const original = (socket as unknown as Record<string, (...args: unknown[]) => void>)[name];
      const counted = (...args: unknown[]): void => {
        writes++;
        Reflect.apply(original as () => void, socket, args);
      };
      Object.defineProperty(socket, name, { value: counted });
    };
    count('_write');
    count('_writev');
    for (let turn = 0; turn < 3; turn++) {
      for (let i = 0; i < 1000; i++) sink.write(Buffer.from('x'));
      expect(writes).toBe(2 * turn + 1);
      await new Promise((resolve) => setImmediate(resolve));
      expect(writes).toBe(2 * turn + 2);
    }
    for (let turn = 0; turn < 3; turn++) {
      sink.write(Buffer.from('y'));
      expect(writes).toBe(7 + turn);
      await new Promise((resolve) => setImmediate(resolve));
    }
    sink.end();
    await answer.end();
    expect([answer.text, answer.ending]).toEqual([`head${'x'.repeat(3000)}yyy`, 'complete']);
  });

  it('frames small chunks of an answer that waits for another one, before and after its turn', async () => {
    const { sinks, answers } = await opened(2);
    sinks[1]?.head(200, []);
    for (const text of ['a', 'b', 'c']) sinks[1]?.write(Buffer.from(text));
    sinks[0]?.head(200, []);
    for (const text of ['1', '2', '3']) sinks[0]?.write(Buffer.from(text));
    sinks[0]?.end();
    await answers[0]?.end();
    for (const text of ['d', 'e', 'f']) sinks[1]?.write(Buffer.from(text));
    sinks[1]?.end();
    await answers[1]?.end();
    expect(answers.map(({ text, ending }) => [text, ending])).toEqual([
      ['123', 'complete'],
      ['abcdef', 'complete'],
    ]);
  });

  it('frames nothing where the length is told', async () => {
    const { sink, answer } = await one();
    sink.head(200, ['content-length', '6']);
    for (const text of ['ab', 'cd', 'ef']) sink.write(Buffer.from(text));
    sink.end();
    await answer.end();
    expect([answer.text, answer.ending]).toEqual(['abcdef', 'complete']);
  });

  it('frames nothing in HTTP/1.0', async () => {
    const answer = scene.connection.expect();
    scene.connection.socket.write('POST / HTTP/1.0\r\n\r\n');
    await waitFor(() => scene.responses.length === 1, 'the request came');
    const sink = new HttpResponseSink(scene.responses[0] as ServerResponse, ANSWERING);
    sink.head(200, []);
    for (const text of ['ab', 'cd', 'ef']) sink.write(Buffer.from(text));
    sink.end();
    await answer.end();
    expect(answer.text).toBe('abcdef');
  });

  it('frames nothing where no body is asked for', async () => {
    scene.connection.socket.write(
      'HEAD / HTTP/1.1\r\nhost: h\r\n\r\nHEAD / HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n',
    );
    let seen = '';
    scene.connection.socket.on('data', (bytes: Buffer) => (seen += bytes.toString('latin1')));
    await waitFor(() => scene.responses.length === 2, 'the requests came');
    for (const response of scene.responses) {
      const sink = new HttpResponseSink(response, ANSWERING);
      sink.head(200, []);
      for (const text of ['ab', 'cd', 'ef']) sink.write(Buffer.from(text));
      sink.end();
    }
    await waitFor(() => scene.connection.closed, 'the connection ended');
    expect(seen.match(/HTTP\/1\.1 200 OK\r\n/g)).toHaveLength(2);
    expect(seen).not.toMatch(/ab|cd|ef/);
  });

  it('gives an injected request its small chunks too', async () => {
    const app = fastify();
    app.get('/', (_request, reply) => {
      reply.hijack();
      const sink = new HttpResponseSink(reply.raw, ANSWERING);
      sink.head(200, []);
      for (const text of ['ab', 'cd', 'ef']) sink.write(Buffer.from(text));
      sink.end();
    });
    expect((await app.inject('/')).payload).toBe('abcdef');
  });

  it('destroys no connection by a small chunk behind its end', async () => {
    const { sink } = await one();
    const { socket } = scene.responses[0] as ServerResponse;
    let failed: Error | null = null;
    socket?.on('error', (error) => (failed = error));
    sink.head(200, []);
    sink.write(Buffer.from('a'));
    socket?.end();
    sink.write(Buffer.from('b'));
    await waitFor(() => scene.connection.closed, 'the connection ended');
    expect(failed).toBeNull();
  });

  it('ends an interrupted answer with its last bytes, then the connection', async () => {
    const { sink, answer } = await one();
    sink.head(200, ['content-type', 'text/event-stream']);
    sink.write(Buffer.from('data: 1\n\n'));
    sink.endInterrupted(STREAM_INTERRUPTED);
    await answer.end();
    expect(answer.text).toBe(`data: 1\n\n${STREAM_INTERRUPTED.toString()}`);
    await waitFor(() => scene.connection.closed, 'the connection ended');
  });

  it('ends the connection also behind an interrupted answer that waits for another one', async () => {
    const { sinks, answers } = await opened(2);
    sinks[1]?.head(200, ['content-type', 'text/event-stream']);
    sinks[1]?.endInterrupted(STREAM_INTERRUPTED);
    sinks[0]?.head(200, ['content-length', '1']);
    sinks[0]?.end(Buffer.from('x'));
    await answers[1]?.end();
    expect(answers[1]?.text).toBe(STREAM_INTERRUPTED.toString());
    await waitFor(() => scene.connection.closed, 'the connection ended', 2000);
  });

  it('breaks the connection where an answer is cut', async () => {
    const { sink, answer } = await one();
    sink.head(200, ['content-type', 'application/json']);
    sink.write(Buffer.from('{"half'));
    await answer.saw('half');
    sink.cut();
    await answer.end();
    expect(answer.ending).not.toBe('complete');
  });

  it('breaks it by a reset where its end would be the end of the answer', async () => {
    const answer = scene.connection.expect();
    scene.connection.socket.write('POST / HTTP/1.0\r\n\r\n');
    await waitFor(() => scene.responses.length === 1, 'the request came');
    const sink = new HttpResponseSink(scene.responses[0] as ServerResponse, ANSWERING);
    sink.head(200, ['content-type', 'application/json']);
    sink.write(Buffer.from('{"half'));
    await answer.saw('half');
    sink.cut();
    await answer.end();
    expect(answer.ending).toBe('reset');
  });

  it.each([20_000, 100_000])(
    'never asks for a pause that no drain ends: two parts of %i bytes',
    async (bytes) => {
      const { sink, answer } = await one();
      sink.head(200, ['content-type', 'application/json']);
      const part = Buffer.alloc(bytes, 0x61);
      for (let i = 0; i < 40; i++) {
        let drained = false;
        sink.onDrain = () => (drained = true);
        if (!sink.write([part, part])) await waitFor(() => drained, `drain ${i} came`, 2000);
      }
      sink.end();
      await answer.end();
      expect(answer.text).toHaveLength(80 * bytes);
    },
  );

  it('asks for a pause while the client does not read, and says when it does again', async () => {
    const { sink, answer } = await one();
    scene.connection.socket.pause();
    let drained = 0;
    sink.onDrain = () => drained++;
    sink.head(200, []);
    let more = true;
    for (let i = 0; i < 200 && more; i++) more = sink.write(Buffer.alloc(256 * 1024));
    expect(more).toBe(false);
    expect(drained).toBe(0);
    scene.connection.socket.resume();
    await waitFor(() => drained === 1, 'the drain');
    sink.end();
    await answer.end();
    expect(answer.ending).toBe('complete');
  });

  it('asks for a pause for small chunks too', async () => {
    const { sink, answer } = await one();
    scene.connection.socket.pause();
    let drained = 0;
    sink.onDrain = () => drained++;
    sink.head(200, []);
    const chunk = Buffer.alloc(4000, 0x61);
    let sent = 0;
    for (let round = 0; round < 3; round++) {
      let more = true;
      for (let i = 0; i < 50_000 && more; i++, sent++) more = sink.write(chunk);
      expect(more).toBe(false);
      expect(drained).toBe(round);
      scene.connection.socket.resume();
      await waitFor(() => drained === round + 1, 'the drain');
      scene.connection.socket.pause();
    }
    scene.connection.socket.resume();
    sink.end();
    await answer.end();
    expect([answer.size, answer.ending]).toEqual([sent * 4000, 'complete']);
  });

  it.each([16, 4000])('never asks for a pause that no drain ends: chunks of %i bytes', async (bytes) => {
    const { sink, answer } = await one();
    sink.head(200, []);
    const chunk = Buffer.alloc(bytes, 0x61);
    let sent = 0;
    let pauses = 0;
    for (let round = 0; round < 20; round++) {
      let drained = false;
      sink.onDrain = () => (drained = true);
      let more = true;
      for (let i = 0; i < 80_000 && more; i += bytes, sent++) more = sink.write(chunk);
      if (more) continue;
      pauses++;
      await waitFor(() => drained, `drain ${round} came`, 2000);
    }
    sink.end();
    await answer.end();
    expect([answer.size, answer.ending]).toEqual([sent * bytes, 'complete']);
    expect(pauses).toBeGreaterThan(0);
  });

  it('answers with an error of ours, and never after a head', async () => {
    const { sink, answer } = await one();
    sink.error(allUpstreams('busy', 1000, []), ['x-llm-proxy-model', 'm']);
    sink.error(allUpstreams('failed', 1000, []), []);
    await answer.end();
    expect(answer.status).toBe(503);
    expect(answer.json).toMatchObject({ error: { code: 'all_upstreams_busy' } });
    expect(answer.header('retry-after')).toBe('1');
    expect(answer.header('x-llm-proxy-model')).toBe('m');
  });

  it('swallows everything when the client has gone', async () => {
    const { sink, answer } = await one();
    answer.leave();
    await waitFor(() => scene.responses[0]?.destroyed === true, 'the server saw it');
    expect(() => {
      sink.head(200, []);
      sink.flush();
      expect(sink.write(Buffer.from('x'))).toBe(true);
      sink.write([Buffer.from('x'), Buffer.from('y')]);
      sink.endInterrupted(Buffer.from('x'));
      sink.end(Buffer.from('x'));
      sink.cut();
      sink.error(allUpstreams('busy', 1, []), []);
    }).not.toThrow();
  });
});
