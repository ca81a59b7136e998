// What a shared slot adds to a request: one through a process of its own, one through a process on Redis, in turn.
import http from 'node:http';
import { ask, listen, promptProvider } from '../failures/ask.mjs';

const WARM_UP = 500;

export class Added {
  memory = [];
  redis = [];
  failed = 0;
  /** Of each request on Redis. */
  roundTrips = NaN;
  #server = promptProvider();

  async listen() {
    return await listen(this.#server);
  }

  close() {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  async run({ memory, redis, shared }, pairs) {
    const ways = [
      { agent: new http.Agent({ keepAlive: true }), port: memory.port, times: this.memory },
      { agent: new http.Agent({ keepAlive: true }), port: shared.port, times: this.redis },
    ];
    const body = { model: 'healthy', messages: [{ role: 'user', content: 'lorem ipsum '.repeat(30) }] };
    let before = 0;
    for (let i = -WARM_UP; i < pairs; i++) {
      if (i === 0) before = await redis.scriptsRun();
      // Who comes first changes, so that neither always pays for what the other left behind.
      for (const { agent, port, times } of i % 2 === 0 ? ways : ways.toReversed()) {
        const startedAt = performance.now();
        const { status } = await ask(agent, port, '/v1/chat/completions', body);
        if (status !== 200) this.failed++;
        if (i >= 0) times.push(performance.now() - startedAt);
      }
    }
    this.roundTrips = ((await redis.scriptsRun()) - before) / pairs;
    for (const { agent } of ways) agent.destroy();
  }
}
