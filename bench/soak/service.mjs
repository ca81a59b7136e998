// The service as a process of its own, and what can be seen of it from outside.
import { spawn } from 'node:child_process';
import {
  closeSync,
  copyFileSync,
  createReadStream,
  existsSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  readSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';

export class Service {
  #directory = mkdtempSync(path.join(os.tmpdir(), 'llm-proxy-soak-'));
  #logFile = path.join(this.#directory, 'log');
  #child;
  exited = null;
  port = 0;

  async start({ node, main, nodeArgs, configuration }) {
    const file = path.join(this.#directory, 'config.yaml');
    writeFileSync(file, configuration);
    const log = openSync(this.#logFile, 'a');
    const env = { PATH: process.env.PATH, CONFIG_PATH: file, LOG_FORMAT: 'json', LOG_LEVEL: 'info' };
    this.#child = spawn(node, [...nodeArgs, main], {
      cwd: this.#directory,
      env,
      stdio: ['ignore', log, log],
    });
    closeSync(log);
    this.#child.on('exit', (code, signal) => (this.exited = { code, signal }));
    for (let i = 0; i < 300 && this.exited === null; i++) {
      const bound = /server: bind host=\S+ port=(\d+)/.exec(this.#beginning)?.[1];
      if (bound !== undefined) {
        this.port = Number(bound);
        return;
      }
      await sleep(50);
    }
    throw new Error(`the service did not start:\n${this.#beginning.slice(-2000)}`);
  }

  get pid() {
    return this.#child.pid;
  }

  /** Its first lines: all that it says of its start. */
  get #beginning() {
    const file = openSync(this.#logFile, 'r');
    try {
      const buffer = Buffer.alloc(64 * 1024);
      return buffer.toString('utf8', 0, readSync(file, buffer, 0, buffer.length, 0));
    } finally {
      closeSync(file);
    }
  }

  /**
   * Lines that tell of an error of the service's own, and whether a text stands in its log. Read line by line: of a long run the
   * log is longer than any string.
   */
  async readLog(text) {
    const found = { errors: [], holdsText: false };
    for await (const line of createInterface({ input: createReadStream(this.#logFile) })) {
      if (/unexpected error|"level":(50|60)|^\s+at /.test(line)) found.errors.push(line);
      found.holdsText ||= line.includes(text);
    }
    return found;
  }

  keepLog(path) {
    copyFileSync(this.#logFile, path);
  }

  rssKilobytes() {
    return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${this.pid}/status`, 'latin1'))?.[1] ?? 0);
  }

  /** Open sockets of the process, listeners included. */
  sockets() {
    const directory = `/proc/${this.pid}/fd`;
    let count = 0;
    for (const fd of readdirSync(directory)) {
      try {
        if (readlinkSync(path.join(directory, fd)).startsWith('socket:')) count++;
      } catch {
        // Closed between the two looks.
      }
    }
    return count;
  }

  /** Gives status, text and the time it took; null where no answer came within the deadline. */
  async get(where, timeoutMs = 5000) {
    const startedAt = performance.now();
    return await new Promise((resolve) => {
      const options = { host: '127.0.0.1', port: this.port, path: where, agent: false, timeout: timeoutMs };
      const request = http.get(options, (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (piece) => (text += piece));
        response.on('end', () =>
          resolve({ status: response.statusCode, text, ms: performance.now() - startedAt }),
        );
      });
      request.on('timeout', () => request.destroy());
      request.on('error', () => resolve(null));
    });
  }

  /** All samples as a map from `name{labels}` to their value. */
  async metrics() {
    const answer = await this.get('/metrics', 10_000);
    const samples = new Map();
    for (const line of (answer?.text ?? '').split('\n')) {
      const space = line.lastIndexOf(' ');
      if (line !== '' && !line.startsWith('#'))
        samples.set(line.slice(0, space), Number(line.slice(space + 1)));
    }
    return samples;
  }

  /** Asks the process to end; gives its exit code, or null where it did not end in time. */
  async stop(timeoutMs = 10_000) {
    if (this.exited === null) this.#child.kill('SIGTERM');
    for (let i = 0; i < timeoutMs / 20 && this.exited === null; i++) await sleep(20);
    if (this.exited === null) this.#child.kill('SIGKILL');
    return this.exited?.code ?? null;
  }

  /** As a crash: it gets no chance to say anything. */
  async kill() {
    this.#child.kill('SIGKILL');
    while (this.exited === null) await sleep(1);
  }

  cleanUp() {
    this.#child?.kill('SIGKILL');
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

/** The Node of the project, else the one that runs this. */
export function nodeOf(root) {
  const own = path.join(root, 'node_modules/.bin/node');
  return existsSync(own) ? own : process.execPath;
}

export function sumOf(samples, name) {
  let sum = 0;
  for (const [key, value] of samples) if (key === name || key.startsWith(`${name}{`)) sum += value;
  return sum;
}
