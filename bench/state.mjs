// What sharing costs: `npm run build && node bench/state.mjs`. Needs redis-server. Prints the table of docs/scaling.md.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const MAIN = fileURLToPath(new URL('../dist/main.js', import.meta.url));
const REQUESTS = 3000;
const HAND_OFFS = 300;
const folder = mkdtempSync(join(tmpdir(), 'llm-proxy-state-'));
const children = [];
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const freePort = async () => {
  const server = net.createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  return port;
};

/** Answers at once, or holds an answer until it is told. */
const arrivals = [];
const held = [];
let holding = false;
const provider = http.createServer((request, response) => {
  request.resume().on('end', () => {
    arrivals.push(performance.now());
    const answer = () =>
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .end('{"id":"x","object":"chat.completion","choices":[]}');
    if (holding) held.push(answer);
    else answer();
  });
});
provider.listen(0, '127.0.0.1');
await once(provider, 'listening');

const redisPort = await freePort();
children.push(
  spawn('redis-server', ['--port', String(redisPort), '--save', '', '--bind', '127.0.0.1'], {
    stdio: 'ignore',
  }),
);
await sleep(500);

async function gateway(name, state) {
  const path = join(folder, `${name}.json`);
  const file = {
    server: { host: '127.0.0.1', port: 0 },
    ...(state === null ? {} : { state }),
    providers: [{ id: 'p', url: `http://127.0.0.1:${provider.address().port}/v1` }],
    upstreams: [
      { id: 'one', provider: 'p', model: 'real', max_concurrency: 1 },
      { id: 'free', provider: 'p', model: 'real' },
    ],
    models: [
      { name: 'one', upstreams: ['one'], queue: { size: 100, wait: 'PT1M' } },
      { name: 'free', upstreams: ['free'] },
    ],
  };
  writeFileSync(path, JSON.stringify(file));
  const child = spawn(process.execPath, [MAIN], {
    env: { ...process.env, CONFIG_PATH: path, LOG_FORMAT: 'json', LOG_LEVEL: 'info' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  children.push(child);
  let said = '';
  for await (const piece of child.stdout) {
    said += piece;
    const port = /port=(\d+)/.exec(said)?.[1];
    if (port !== undefined) {
      child.stdout.resume();
      return { child, port: Number(port), agent: new http.Agent({ keepAlive: true }) };
    }
  }
  throw new Error(said);
}

function ask({ agent, port }, model) {
  const body = JSON.stringify({ model, messages: [{ role: 'user', content: 'hi' }] });
  return new Promise((resolve, reject) => {
    const request = http.request(
      { port, host: '127.0.0.1', path: '/v1/chat/completions', method: 'POST', agent,
        headers: { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) } },
      (response) => response.resume().on('end', () => resolve(response.statusCode)),
    ); // prettier-ignore
    request.on('error', reject);
    request.end(body);
  });
}

const at = (times, part) => times.toSorted((a, b) => a - b)[Math.floor(times.length * part)];
const ms = (value) => `${value.toFixed(2)} ms`;

async function latencies(target, model) {
  for (let i = 0; i < 500; i++) await ask(target, model);
  const times = [];
  for (let i = 0; i < REQUESTS; i++) {
    const began = performance.now();
    await ask(target, model);
    times.push(performance.now() - began);
  }
  return times;
}

try {
  const memory = await gateway('memory', null);
  const state = { store: 'redis', url: `redis://127.0.0.1:${redisPort}` };
  const [a, b] = [await gateway('a', state), await gateway('b', state)];
  const rows = [];
  for (const [name, target, model] of [
    ['memory, a limit of 1', memory, 'one'],
    ['Redis, a limit of 1', a, 'one'],
    ['Redis, no limit', a, 'free'],
  ]) {
    const times = await latencies(target, model);
    rows.push([`request, ${name}`, `median ${ms(at(times, 0.5))}, p99 ${ms(at(times, 0.99))}`]);
  }

  holding = true;
  const handOffs = [];
  for (let i = 0; i < HAND_OFFS; i++) {
    const [from, to] = i % 2 === 0 ? [a, b] : [b, a];
    const first = ask(from, 'one');
    while (held.length === 0) await sleep(1);
    const second = ask(to, 'one');
    await sleep(20);
    const count = arrivals.length;
    const began = performance.now();
    held.shift()();
    while (arrivals.length === count) await new Promise((resolve) => setImmediate(resolve));
    handOffs.push(arrivals.at(-1) - began);
    await first;
    held.shift()();
    await second;
  }
  rows.push([
    'end of an exchange at one replica → next one of another replica at the provider',
    `median ${ms(at(handOffs, 0.5))}, p99 ${ms(at(handOffs, 0.99))}`,
  ]);

  const cut = ask(a, 'one').catch(() => 0);
  while (held.length === 0) await sleep(1);
  const next = ask(b, 'one');
  await sleep(50);
  const count = arrivals.length;
  const killed = performance.now();
  a.child.kill('SIGKILL');
  await cut;
  while (arrivals.length === count) await sleep(5);
  const back = (arrivals.at(-1) - killed) / 1000;
  rows.push(['SIGKILL of a replica in mid-stream → its slot is used by another', `${back.toFixed(1)} s`]);
  held.pop()();
  await next;

  console.log(`Node ${process.version}, ${cpus().length} cores, Redis on the same machine\n`);
  console.log('| what | measured |\n| --- | --- |');
  for (const row of rows) console.log(`| ${row.join(' | ')} |`);
} finally {
  for (const child of children) child.kill('SIGKILL');
  provider.close();
  provider.closeAllConnections();
  rmSync(folder, { recursive: true, force: true });
}
