import { createServer, type Server, type ServerResponse } from 'node:http';
import { afterEach, beforeEach } from 'vitest';
import { HttpResponseSink } from '../../src/http/http-response-sink.js';
import { connectTo, type RawAnswer, type RawConnection } from './raw-client.js';
import { waitFor } from './wait-for.js';

/** Answers on one real connection, with a sink for each. For a whole file: it registers what comes before and after each test. */
export function sinkScene() {
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

  return {
    opened,
    one,
    answering: ANSWERING,
    get server() {
      return server;
    },
    get responses() {
      return responses;
    },
    get connection() {
      return connection;
    },
  };
}
