import { createServer, type Server, type ServerResponse } from 'node:http';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
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

describe('HttpResponseSink, the last resort', () => {
  it('closes before the head with a plain 500', async () => {
    const { sink, answer } = await one();
    sink.close();
    sink.close();
    await answer.end();
    expect([answer.status, answer.ending, answer.header('x-request-id')]).toEqual([500, 'complete', 'r1']);
    expect(answer.json).toMatchObject({ error: { code: 'internal_error' } });
  });

  it('closes behind the head by breaking the connection', async () => {
    const { sink, answer } = await one();
    sink.head(200, []);
    sink.write(Buffer.from('a'));
    await answer.saw('a');
    sink.close();
    await answer.end();
    expect([answer.status, answer.ending]).toEqual([200, 'cut']);
  });

  it('closes nothing that has an end, and what waits behind another answer', async () => {
    const { sinks, answers } = await opened(2);
    sinks[1]?.close();
    sinks[0]?.head(200, []);
    sinks[0]?.end(Buffer.from('whole'));
    sinks[0]?.close();
    for (const answer of answers) await answer.end();
    expect(answers.map(({ status, ending }) => [status, ending])).toEqual([
      [200, 'complete'],
      [500, 'complete'],
    ]);
    expect(answers[0]?.text).toBe('whole');
  });

  it('breaks the connection where not even the plain 500 can be written', async () => {
    const { answers } = await opened();
    const [response] = responses;
    new HttpResponseSink(response as ServerResponse, { ...ANSWERING, headers: ['x', 'a\nb'] }).close();
    await answers[0]?.end();
    expect([answers[0]?.status, answers[0]?.ending]).toEqual([0, 'cut']);
  });
});
