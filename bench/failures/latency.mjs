// What the gateway adds at light load: one request at a time, one through it, one around it, in turn.
import http from 'node:http';
import { ask, listen, promptProvider } from './ask.mjs';

const WARM_UP = 300;

export class Latency {
  direct = [];
  through = [];
  failed = 0;
  #server = promptProvider();
  #port = 0;

  async listen() {
    return (this.#port = await listen(this.#server));
  }

  close() {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  async run(gatewayPort, pairs) {
    const ways = [
      {
        agent: new http.Agent({ keepAlive: true }),
        port: this.#port,
        path: '/healthy/v1',
        times: this.direct,
      },
      { agent: new http.Agent({ keepAlive: true }), port: gatewayPort, path: '/v1', times: this.through },
    ];
    const body = { model: 'healthy', messages: [{ role: 'user', content: 'lorem ipsum '.repeat(30) }] };
    for (let i = -WARM_UP; i < pairs; i++) {
      // Who comes first changes, so that neither always pays for what the other left behind.
      for (const { agent, port, path, times } of i % 2 === 0 ? ways : ways.toReversed()) {
        const startedAt = performance.now();
        const { status } = await ask(agent, port, `${path}/chat/completions`, body);
        if (status !== 200) this.failed++;
        if (i >= 0) times.push(performance.now() - startedAt);
      }
    }
    for (const { agent } of ways) agent.destroy();
  }
}

export function quantile(values, part) {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))];
}
