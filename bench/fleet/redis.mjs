// A redis-server of one's own, which can be stopped, frozen and started again empty; and what stands in it.
import { createClient } from '@redis/client';
import { spawn } from 'node:child_process';
import net from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

export const PREFIX = 'llm-proxy:';

export class RedisProcess {
  port = 0;
  #child = null;
  #gone = Promise.resolve();

  async start() {
    this.port = await freePort();
    await this.up();
  }

  /** Starts it, empty; resolves when it takes connections. */
  async up() {
    const args = ['--port', String(this.port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'];
    const child = spawn('redis-server', args, { stdio: 'ignore' });
    this.#child = child;
    let failed = null;
    this.#gone = new Promise((resolve) => {
      child.once('exit', resolve);
      child.once('error', (error) => resolve((failed = error)));
    });
    while (!(await accepts(this.port))) {
      if (failed !== null) throw new Error(`redis-server cannot be started: ${failed.message}`);
      await sleep(2);
    }
  }

  async down() {
    this.#child.kill('SIGTERM');
    await this.#gone;
  }

  freeze() {
    this.#child.kill('SIGSTOP');
  }

  thaw() {
    this.#child.kill('SIGCONT');
  }

  cleanUp() {
    this.#child?.kill('SIGKILL');
  }

  /** Leases and places kept that have not lapsed, in all pools. */
  async leases() {
    return await this.#with(async (client) => {
      const [seconds, micros] = await client.sendCommand(['TIME']);
      const now = Number(seconds) * 1000 + Math.floor(Number(micros) / 1000);
      const found = [];
      for (const key of await client.sendCommand(['KEYS', `${PREFIX}pool:*`]))
        found.push(...(await client.sendCommand(['ZRANGEBYSCORE', key, `(${now}`, '+inf'])));
      return found;
    });
  }

  /** Scripts that were run so far: each is one round trip. */
  async scriptsRun() {
    const info = await this.#with((client) => client.sendCommand(['INFO', 'commandstats']));
    return Number(/cmdstat_evalsha:calls=(\d+)/.exec(String(info))?.[1] ?? 0);
  }

  async #with(use) {
    const client = createClient({ url: `redis://127.0.0.1:${this.port}` });
    client.on('error', () => {});
    await client.connect();
    try {
      return await use(client);
    } finally {
      client.destroy();
    }
  }
}

async function freePort() {
  const server = net.createServer();
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

function accepts(port) {
  return new Promise((resolve) => {
    const socket = net.connect(port, '127.0.0.1');
    const end = (answer) => {
      socket.destroy();
      resolve(answer);
    };
    socket.once('connect', () => end(true));
    socket.once('error', () => end(false));
  });
}
