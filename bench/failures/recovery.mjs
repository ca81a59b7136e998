// Upstreams that die and come back while clients keep asking: how long until the first of them is let through again.
import http from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { ask, listen } from './ask.mjs';

export const ASK_EVERY_MS = 50;
const GIVEN_UP_AFTER_MS = 60_000;
const ANSWER = JSON.stringify({
  id: 'c1',
  object: 'chat.completion',
  created: 1,
  model: 'real',
  choices: [{ index: 0, message: { role: 'assistant', content: 'here' }, finish_reason: 'stop' }],
});

/** Resets every connection while it is dead. */
export class Mortal {
  port = 0;
  timesMs = [];
  #dead = false;
  #onRequest = () => {};
  #sockets = new Set();
  #server = http.createServer((request, response) => {
    // A probe carries no header of a client.
    if (request.headers['x-bench-client'] !== undefined) this.#onRequest();
    request.resume();
    response.writeHead(200, { 'content-type': 'application/json' }).end(ANSWER);
  });

  constructor(id, recovery, random) {
    this.id = id;
    this.recovery = recovery;
    this.random = random;
    this.#server.on('connection', (socket) => {
      this.#sockets.add(socket);
      socket.on('close', () => this.#sockets.delete(socket));
      if (this.#dead) socket.resetAndDestroy();
    });
  }

  async listen() {
    this.port = await listen(this.#server);
  }

  close() {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  /** Each round: dead for a random while, then alive until a client's request has come. */
  async live(gatewayPort, rounds) {
    const agent = new http.Agent({ keepAlive: true });
    for (let round = 0; round < rounds; round++) {
      this.#dead = true;
      for (const socket of this.#sockets) socket.resetAndDestroy();
      const { promise: came, resolve } = Promise.withResolvers();
      let waiting = true;
      const asking = this.#ask(agent, gatewayPort, () => waiting);
      await sleep(this.random.whole(1000, 9000));
      this.#onRequest = resolve;
      this.#dead = false;
      const backAt = performance.now();
      const late = new AbortController();
      const tooLate = sleep(GIVEN_UP_AFTER_MS, 'never', { signal: late.signal }).catch(() => 'over');
      const how = await Promise.race([came, tooLate]);
      this.timesMs.push(how === 'never' ? Infinity : performance.now() - backAt);
      late.abort();
      waiting = false;
      this.#onRequest = () => {};
      await asking;
    }
    agent.destroy();
  }

  async #ask(agent, port, wanted) {
    const body = { model: this.id, messages: [{ role: 'user', content: 'there?' }] };
    while (wanted()) {
      await ask(agent, port, '/v1/chat/completions', body, { 'x-bench-client': 'yes' });
      if (wanted()) await sleep(ASK_EVERY_MS);
    }
  }
}
