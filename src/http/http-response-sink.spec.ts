import { createServer, type Server, type ServerResponse } from 'node:http';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { allUpstreams, STREAM_INTERRUPTED } from '../common/errors/catalogue.js';
import { connectTo, type RawConnection, type RawAnswer } from '../../test/support/raw-client.js';
import { waitFor } from '../../test/support/wait-for.js';
import { HttpResponseSink } from './http-response-sink.js';

let server: Server;
let responses: ServerResponse[] = [];
let connection: RawConnection;

beforeEach(async () => {
  responses = [];
  server = createServer((request, response) => {
    request.resume();
    response.on('error', () => {});
    responses.push(response);
  });
  connection = await connectTo(server);
});

afterEach(() => {
  connection.close();
  server.closeAllConnections();
  server.close();
});

const ANSWERING = {
  requestId: 'r1',
  form: 'openai',
  continueDue: false,
  headers: ['x-request-id', 'r1'],
} as const;

async function opened(requests = 1): Promise<{ sinks: HttpResponseSink[]; answers: RawAnswer[] }> {
  const answers = Array.from({ length: requests }, () => connection.send({ path: '/', body: {} }));
  await waitFor(() => responses.length === requests, 'the requests came');
  return {
    sinks: responses.map((response) => new HttpResponseSink(response, ANSWERING)),
    answers,
  };
}

async function one(): Promise<{ sink: HttpResponseSink; answer: RawAnswer }> {
  const { sinks, answers } = await opened();
  return { sink: sinks[0] as HttpResponseSink, answer: answers[0] as RawAnswer };
}

describe('HttpResponseSink', () => {
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
    const response = responses[0] as ServerResponse;
    sink.head(200, []);
    sink.write(Buffer.from('a'));
    // More pieces than a socket takes at once.
    for (let i = 0; i < 400_000; i++) response.write('x');
    sink.end(Buffer.from('z'));
    expect(sink.refused).toMatchObject({ code: 'EINVAL' });
  });

  it('ends an interrupted answer with its last bytes, then the connection', async () => {
    const { sink, answer } = await one();
    sink.head(200, ['content-type', 'text/event-stream']);
    sink.write(Buffer.from('data: 1\n\n'));
    sink.endInterrupted(STREAM_INTERRUPTED);
    await answer.end();
    expect(answer.text).toBe(`data: 1\n\n${STREAM_INTERRUPTED.toString()}`);
    await waitFor(() => connection.closed, 'the connection ended');
  });

  it('ends the connection also behind an interrupted answer that waits for another one', async () => {
    const { sinks, answers } = await opened(2);
    sinks[1]?.head(200, ['content-type', 'text/event-stream']);
    sinks[1]?.endInterrupted(STREAM_INTERRUPTED);
    sinks[0]?.head(200, ['content-length', '1']);
    sinks[0]?.end(Buffer.from('x'));
    await answers[1]?.end();
    expect(answers[1]?.text).toBe(STREAM_INTERRUPTED.toString());
    await waitFor(() => connection.closed, 'the connection ended', 2000);
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
    const answer = connection.expect();
    connection.socket.write('POST / HTTP/1.0\r\n\r\n');
    await waitFor(() => responses.length === 1, 'the request came');
    const sink = new HttpResponseSink(responses[0] as ServerResponse, ANSWERING);
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
    connection.socket.pause();
    let drained = 0;
    sink.onDrain = () => drained++;
    sink.head(200, []);
    let more = true;
    for (let i = 0; i < 200 && more; i++) more = sink.write(Buffer.alloc(256 * 1024));
    expect(more).toBe(false);
    expect(drained).toBe(0);
    connection.socket.resume();
    await waitFor(() => drained === 1, 'the drain');
    sink.end();
    await answer.end();
    expect(answer.ending).toBe('complete');
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
    await waitFor(() => responses[0]?.destroyed === true, 'the server saw it');
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
