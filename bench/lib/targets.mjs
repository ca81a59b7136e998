// Starts the proxies under test on their core and knows how each one wants to be asked.
import { spawn, fork } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  closeSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { onProxyCore } from './proc.mjs';
import { standard, writeConfig } from './us-config.mjs';

const bench = dirname(dirname(fileURLToPath(import.meta.url)));
const project = dirname(bench);
const nodeOfProject = join(project, 'node_modules/.bin/node');
export const node = existsSync(nodeOfProject) ? nodeOfProject : process.execPath;
const main = process.env.BENCH_MAIN ?? join(project, 'dist/main.js');
const portkeyDirectory = process.env.BENCH_PORTKEY_DIR ?? join(project, 'node_modules/@portkey-ai/gateway');
const portkeyMain = join(portkeyDirectory, 'build/start-server.js');
const nginx = '/usr/sbin/nginx';
const START_LIMIT_MS = 30_000;
const running = new Set();

/** Why a target cannot be measured here, or null. */
export function missing(kind) {
  if (kind === 'us' && !existsSync(main)) return `${main} is not there: run \`npm run build\` first`;
  if (kind === 'portkey' && !existsSync(portkeyMain))
    return '@portkey-ai/gateway is not installed (BENCH_PORTKEY_DIR)';
  if (kind === 'nginx' && !existsSync(nginx)) return `${nginx} is not there (Debian: nginx-light)`;
  return null;
}

export function temporaryDirectory() {
  return mkdtempSync(join(os.tmpdir(), 'llm-proxy-bench-'));
}

export function freePort() {
  return new Promise((resolve, reject) => {
    const server = net.createServer().once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

/** The fake provider as a process of its own on the load generator's core. */
export async function startProvider() {
  const child = fork(join(bench, 'provider.mjs'), [], { execPath: node, execArgv: [] });
  running.add(child);
  const answer = (key) =>
    new Promise((resolve) => {
      const listen = (message) => {
        if (message[key] === undefined) return;
        child.off('message', listen);
        resolve(message[key]);
      };
      child.on('message', listen);
    });
  const port = await answer('port');
  return {
    pid: child.pid,
    port,
    origin: `http://127.0.0.1:${port}`,
    stats() {
      const stats = answer('stats');
      child.send({ ask: 'stats' });
      return stats;
    },
    /** The next request as the provider sees it: `{ head, body }`. */
    capture() {
      const captured = answer('captured');
      child.send({ ask: 'capture' });
      return captured;
    },
    stop: () => child.kill(),
  };
}

/** Command, environment and ways of asking, by kind. */
function launch(kind, { directory, port, upstream, config, nodeArgs }) {
  const reference = (file) => ({
    command: node,
    args: [...nodeArgs, join(bench, 'references', file)],
    env: { UPSTREAM_URL: upstream, REAL_MODEL: 'real-model' },
  });
  switch (kind) {
    case 'us': {
      const path = join(directory, 'config.yaml');
      writeConfig(path, config ?? standard({ upstream }), port);
      return {
        command: node,
        args: [...nodeArgs, main],
        env: { CONFIG_PATH: path, LOG_FORMAT: 'json', LOG_LEVEL: 'info' },
      };
    }
    case 'naive':
      return reference('naive.mjs');
    case 'splice':
      return reference('splice.mjs');
    case 'nest-empty':
      return reference('nest-empty.mjs');
    case 'portkey':
      return {
        command: node,
        args: [portkeyMain, `--port=${port}`, '--headless'],
        env: { TRUSTED_CUSTOM_HOSTS: '127.0.0.1' },
        headers: { 'x-portkey-provider': 'openai', 'x-portkey-custom-host': upstream },
        ready: '/',
      };
    case 'nginx':
      writeFileSync(join(directory, 'nginx.conf'), nginxConfig(directory, port, upstream));
      return {
        command: nginx,
        args: ['-p', directory, '-c', join(directory, 'nginx.conf')],
        env: {},
        ready: '/',
      };
    default:
      throw new Error(`unknown target: ${kind}`);
  }
}

function nginxConfig(directory, port, upstream) {
  const { host, pathname } = new URL(upstream);
  return `daemon off; master_process off; pid ${directory}/nginx.pid; error_log ${directory}/error.log;
events { worker_connections 8192; }
http {
  access_log ${directory}/access.log;
  client_body_temp_path ${directory}/body; proxy_temp_path ${directory}/proxy; fastcgi_temp_path ${directory}/f;
  uwsgi_temp_path ${directory}/u; scgi_temp_path ${directory}/s;
  client_max_body_size 0; client_body_buffer_size 64k; keepalive_requests 10000000; tcp_nodelay on;
  upstream provider { server ${host}; keepalive 4096; }
  server {
    listen 127.0.0.1:${port} backlog=4096;
    location /v1/ {
      proxy_pass http://provider${pathname}/;
      proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Authorization "Bearer bench-key";
      proxy_buffering off; proxy_request_buffering off; proxy_read_timeout 1h;
    }
  }
}
`;
}

/**
 * One running proxy. `name` is how the report calls it (several of the same kind may run), `upstream` the base url of
 * the provider behind it.
 */
export async function startTarget({
  name,
  kind = name,
  upstream,
  config,
  directory,
  nodeArgs = environmentArgs(),
}) {
  const port = await freePort();
  const home = join(directory, `${name}-${port}`);
  mkdirSync(home, { recursive: true });
  const plan = launch(kind, { directory: home, port, upstream, config, nodeArgs });
  const output = join(home, 'output.log');
  const file = openSync(output, 'a');
  const startedAt = performance.now();
  const child = spawn(...onProxyCore(plan.command, plan.args), {
    cwd: home,
    env: { ...process.env, NODE_ENV: 'production', PORT: String(port), ...plan.env },
    stdio: ['ignore', file, file],
  });
  closeSync(file);
  running.add(child);
  const exited = new Promise((resolve) => {
    child.once('exit', (code, signal) => {
      running.delete(child);
      resolve(signal ?? code);
    });
  });
  let gone = false;
  void exited.then(() => (gone = true));
  const target = {
    name,
    kind,
    pid: child.pid,
    port,
    headers: plan.headers ?? {},
    home,
    startMs: 0,
    exited,
    async stop({ graceMs = 5000 } = {}) {
      child.kill('SIGTERM');
      const timer = setTimeout(() => child.kill('SIGKILL'), graceMs);
      await exited;
      clearTimeout(timer);
      rmSync(output, { force: true });
    },
  };
  for (;;) {
    if (await answers(port, plan.ready ?? '/healthz')) break;
    if (gone || performance.now() - startedAt > START_LIMIT_MS) {
      const tail = readFileSync(output, 'utf8').slice(-2000);
      child.kill('SIGKILL');
      throw new Error(`${name} did not start (${gone ? `ended: ${await exited}` : 'no answer'})\n${tail}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
  target.startMs = performance.now() - startedAt;
  return target;
}

export function environmentArgs() {
  return (process.env.BENCH_NODE_ARGS ?? '').split(' ').filter((arg) => arg !== '');
}

/** True once any HTTP answer comes. */
function answers(port, path) {
  return new Promise((resolve) => {
    const socket = net.connect({ port, host: '127.0.0.1' }, () => {
      socket.write(`GET ${path} HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\nconnection: close\r\n\r\n`);
    });
    socket.once('data', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
    socket.once('close', () => resolve(false));
  });
}

/** Ends whatever this process started; for an interrupted run. */
export function stopAll() {
  for (const child of running) child.kill('SIGKILL');
}
