// What waiting costs: how long a slot stays idle between two exchanges while somebody waits, and the CPU time that ten
// thousand waiting requests take while nothing happens. Usage: node bench/queue.mjs
import { createServer } from 'node:http';
import { connect } from 'node:net';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { spawn } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const MAIN = process.env.BENCH_MAIN ?? fileURLToPath(new URL('../dist/main.js', import.meta.url));
const IN_LINE = 200;
const CONNECTIONS = 200;
const PIPELINED = 50;
const QUIET_MS = 5000;
const TICKS = 100;

const held = [];
let holding = true;
const provider = createServer((request, response) => {
  request.resume().on('end', () => {
    const answer = () => {
      response.setHeader('content-type', 'application/json');
      response.end('{"choices":[]}');
    };
    if (holding) held.push(answer);
    else setTimeout(answer, 2);
  });
}).listen(0, '127.0.0.1', start);

function start() {
  const directory = mkdtempSync(join(tmpdir(), 'llm-proxy-queue-'));
  const config = join(directory, 'config.yaml');
  writeFileSync(
    config,
    JSON.stringify({
      server: { host: '127.0.0.1', port: 0 },
      providers: [{ id: 'p', url: `http://127.0.0.1:${provider.address().port}` }],
      upstreams: [{ id: 'u', provider: 'p', model: 'r', max_concurrency: 1 }],
      models: [{ name: 'm', upstreams: ['u'], queue: { size: 20_000, wait: 'PT10M' } }],
    }),
  );
  const child = spawn(process.execPath, [MAIN], {
    env: { ...process.env, CONFIG_PATH: config, LOG_FORMAT: 'json' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  child.stdout.on('data', (bytes) => {
    const port = /bind host=127\.0\.0\.1 port=(\d+)/.exec(String(bytes))?.[1];
    if (port !== undefined)
      void run(child, Number(port)).finally(() => rmSync(directory, { recursive: true }));
  });
}

async function run(child, port) {
  const origin = `http://127.0.0.1:${port}`;
  const body = '{"model":"m","messages":[]}';
  const head = `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`;
  const metric = async (name) => {
    const text = await (await fetch(`${origin}/metrics`)).text();
    return [...text.matchAll(new RegExp(`^${name}(\\{[^}]*\\})? (\\S+)$`, 'gm'))].map(
      ([, labels, value]) => ({
        le: /le="([^"]+)"/.exec(labels ?? '')?.[1],
        value: Number(value),
      }),
    );
  };
  const depth = async (wanted) => {
    while ((await metric('llm_proxy_queue_depth'))[0]?.value !== wanted)
      await new Promise((resolve) => setTimeout(resolve, 50));
  };
  const cpu = () => {
    const fields = readFileSync(`/proc/${child.pid}/stat`, 'latin1').split(') ')[1].split(' ');
    return ((Number(fields[11]) + Number(fields[12])) * 1000) / TICKS;
  };

  const asks = Array.from({ length: IN_LINE + 1 }, () =>
    fetch(`${origin}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
    }).then((answer) => answer.text()),
  );
  await depth(IN_LINE);
  holding = false;
  for (const answer of held.splice(0)) answer();
  await Promise.all(asks);
  const buckets = await metric('llm_proxy_slot_idle_seconds_bucket');
  const [count] = await metric('llm_proxy_slot_idle_seconds_count');
  const median = buckets.find(({ value }) => value >= count.value / 2)?.le;
  console.log(
    `${IN_LINE} in line at one slot: ${count.value} hand-offs, median idle time of the slot ≤ ${median} s`,
  );

  holding = true;
  const sockets = Array.from({ length: CONNECTIONS }, () => {
    const socket = connect(port, '127.0.0.1');
    socket.resume().write((head + body).repeat(PIPELINED));
    return socket;
  });
  const waiting = CONNECTIONS * PIPELINED - 1;
  await depth(waiting);
  const before = cpu();
  await new Promise((resolve) => setTimeout(resolve, QUIET_MS));
  console.log(`${waiting} waiting for ${QUIET_MS / 1000} s: ${cpu() - before} ms of CPU time`);
  const drained = cpu();
  holding = false;
  const since = performance.now();
  for (const answer of held.splice(0)) answer();
  await depth(0);
  const [holds] = await metric('llm_proxy_slot_hold_seconds_count');
  console.log(
    `served in ${Math.round(performance.now() - since)} ms with ${Math.round(((cpu() - drained) * 1000) / waiting)} µs of CPU time each (${holds.value} exchanges)`,
  );
  for (const socket of sockets) socket.destroy();
  child.kill('SIGTERM');
  child.once('exit', () => process.exit());
}
