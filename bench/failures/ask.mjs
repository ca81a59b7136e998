// One request on a kept connection, read to its end however it ends.
import http from 'node:http';

/** Gives status (0 where none came), text, and whether the answer ended as its framing says. */
export async function ask(agent, port, path, body, headers = {}) {
  const bytes = Buffer.from(JSON.stringify(body));
  return await new Promise((resolve) => {
    let text = '';
    let status = 0;
    const end = (whole) => resolve({ status, text, whole });
    const request = http.request(
      {
        agent,
        host: '127.0.0.1',
        port,
        path,
        method: 'POST',
        headers: { 'content-type': 'application/json', 'content-length': bytes.length, ...headers },
      },
      (response) => {
        status = response.statusCode;
        response.setEncoding('utf8').on('data', (piece) => (text += piece));
        response.on('end', () => end(true));
        response.on('error', () => end(false));
      },
    );
    request.on('error', () => end(false));
    request.end(bytes);
  });
}

export async function jsonOf(request) {
  const pieces = [];
  for await (const piece of request) pieces.push(piece);
  return JSON.parse(Buffer.concat(pieces).toString());
}

export async function listen(server) {
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return server.address().port;
}

/** A provider that answers every request at once with the same small completion. */
export function promptProvider() {
  const message = { role: 'assistant', content: 'Hello there. '.repeat(20) };
  const choices = [{ index: 0, message, finish_reason: 'stop' }];
  const body = JSON.stringify({ id: 'c1', object: 'chat.completion', created: 1, model: 'real', choices });
  const head = { 'content-type': 'application/json', 'content-length': body.length };
  return http.createServer((request, response) => {
    void jsonOf(request).then(() => response.writeHead(200, head).end(body));
  });
}
