import { createClient } from '@redis/client';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'vitest';
import { waitFor } from './wait-for.js';

const BINARIES = ['redis-server', 'valkey-server'];

const binary = BINARIES.find((name) => spawnSync(name, ['--version'], { stdio: 'ignore' }).status === 0);

/** A redis-server of one's own on a free port; keeps nothing on disk. Stopped by whoever started it. */
export class RedisServer {
  #child: ChildProcess | null = null;
  #gone: Promise<unknown> = Promise.resolve();
  #folder = '';

  private constructor(
    readonly port: number,
    private readonly args: readonly string[],
  ) {}

  static async start(args: readonly string[] = []): Promise<RedisServer> {
    const server = new RedisServer(await freePort(), args);
    await server.up();
    return server;
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`;
  }

  /** Starts it, empty. */
  async up(): Promise<void> {
    this.#folder = mkdtempSync(join(tmpdir(), 'llm-proxy-redis-'));
    // Trap: a replica of Redis writes what it gets from its master to its folder, and whoever starts there loads it.
    const fixed = [
      '--port', String(this.port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no',
      '--dir', this.#folder,
    ]; // prettier-ignore
    const child = spawn(binary as string, [...fixed, ...this.args], { stdio: 'ignore' });
    this.#child = child;
    this.#gone = new Promise((resolve) => child.once('exit', resolve));
    await waitFor(() => accepts(this.port), 'redis-server listened');
  }

  /** One command, on a connection of its own. */
  async command(...args: string[]): Promise<unknown> {
    const client = createClient({ url: this.url });
    await client.connect();
    const reply = await client.sendCommand(args);
    client.destroy();
    return reply;
  }

  /** By its own clock. */
  async nowMs(): Promise<number> {
    const [seconds, micros] = (await this.command('TIME')) as [string, string];
    return Number(seconds) * 1000 + Number(micros) / 1000;
  }

  /** The last of the times in a sorted set of them. */
  async lastIn(key: string): Promise<number> {
    const last = (await this.command('ZRANGE', key, '-1', '-1', 'WITHSCORES')) as unknown[];
    const score = Number(last.flat().at(-1));
    if (Number.isNaN(score)) throw new Error(`nothing is in ${key}`);
    return score;
  }

  signal(signal: NodeJS.Signals): void {
    this.#child?.kill(signal);
  }

  /** As a crash: nothing is said to anybody. */
  async kill(): Promise<void> {
    this.signal('SIGKILL');
    await this.#gone;
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** Tests that need a redis-server. Without one they fail in CI, and say so aloud elsewhere. */
export function describeWithRedis(name: string, tests: () => void): void {
  if (binary !== undefined) {
    describe(name, tests);
  } else if (process.env['CI'] !== undefined) {
    describe(name, () => {
      it('needs redis-server', () => {
        throw new Error('no redis-server on this machine: apt-get install redis-server');
      });
    });
  } else {
    process.stderr.write(
      `\n!!! NOT TESTED: ${name}: no redis-server on this machine (apt-get install redis-server)\n\n`,
    );
    describe.skip(name, tests);
  }
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    const end = (answer: boolean) => {
      socket.destroy();
      resolve(answer);
    };
    socket.once('connect', () => end(true));
    socket.once('error', () => end(false));
  });
}
