#!/usr/bin/env node
// The soak: the built service against providers that fail in every way and clients that leave at any moment.
// npm run soak -- --minutes 20 | --requests 10000 [--markdown docs/reliability.md] [--clients 40] [--seed 1]
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Client } from './soak/client.mjs';
import { configurationText, KEY, UPSTREAMS } from './soak/configuration.mjs';
import { MemoryTrend } from './soak/memory-trend.mjs';
import { FakeProvider } from './soak/provider.mjs';
import { asked } from './soak/options.mjs';
import { Random } from './soak/random.mjs';
import { counted, must, table, writeBetweenMarkers } from './soak/report.mjs';
import { nodeOf, Service, sumOf } from './soak/service.mjs';
import { Verdict } from './soak/verdict.mjs';
import { readOptions } from './lib/options.mjs';

const ROOT = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const HEALTH_EVERY_MS = 500;
const SAMPLE_EVERY_MS = 1000;
const PROGRESS_EVERY_MS = 5000;
const IDLE_WITHIN_MS = 15_000;
/** However it is asked, a run ends. */
const LONGEST_MINUTES = 24 * 60;
/** In less time the slope says nothing: the heap still finds its size. */
const SLOPE_COUNTS_FROM_SECONDS = 300;
const SLOPE_LIMIT_MB_PER_THOUSAND = 0.25;
const HEALTH_LIMIT_MS = 5000;

const options = readOptions(import.meta.url, {
  minutes: { type: 'string' },
  requests: { type: 'string' },
  markdown: { type: 'string' },
  clients: { type: 'string', default: '40' },
  seed: { type: 'string', default: String(Date.now() % 1_000_000) },
  main: { type: 'string', default: path.join(ROOT, 'dist/main.js') },
  'node-args': { type: 'string', default: '' },
  'keep-log': { type: 'string' },
});

const requestsWanted = asked(options.requests, options.minutes === undefined ? 10_000 : Infinity);
const deadlineMs = Math.min(asked(options.minutes, LONGEST_MINUTES), LONGEST_MINUTES) * 60_000;
const seed = asked(options.seed, 1);

const service = new Service();
const random = new Random(seed);
const limits = Object.fromEntries(Object.entries(UPSTREAMS).map(([id, { limit }]) => [id, limit]));
const provider = new FakeProvider(new Random(seed + 1), limits);
const verdict = new Verdict(provider);
const trend = new MemoryTrend();
const health = { asked: 0, failed: 0, worstMs: 0 };
let sent = 0;
let stopping = false;

process.on('exit', () => service.cleanUp());
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => (stopping = true));

const startedAt = performance.now();
const seconds = () => (performance.now() - startedAt) / 1000;

async function main() {
  await service.start({
    node: nodeOf(ROOT),
    nodeArgs: options['node-args'].split(' ').filter(Boolean),
    main: options.main,
    configuration: configurationText(await provider.listen()),
  });
  const base = await quietState();
  const clients = await load();
  const rest = await settle(base);
  // Read before the end, since the process takes it along.
  const { errors, holdsText: leaked } = await service.readLog(KEY);
  if (options['keep-log'] !== undefined) service.keepLog(options['keep-log']);
  const exitCode = await service.stop();
  const rows = results({ base, clients, rest, errors, exitCode, leaked });
  report(rows);
  await provider.close();
  process.exit(rows.every(({ ok }) => ok !== false) ? 0 : 1);
}

/** The process with nothing to do: sockets and timers that it has anyway. */
async function quietState() {
  await service.get('/healthz');
  await sleep(300);
  const samples = await service.metrics();
  return { sockets: service.sockets(), timers: timersIn(samples), samples };
}

const timersIn = (samples) => samples.get('nodejs_active_resources{type="Timeout"}') ?? 0;

async function load() {
  const clients = [];
  for (let i = 0; i < asked(options.clients, 40); i++) {
    clients.push(new Client(random, service.port, (answer, wish) => verdict.check(answer, wish)));
  }
  const watching = watch();
  await Promise.all(
    clients.map(async (client) => {
      while (!over()) {
        const count = await client.once();
        sent += count;
      }
      client.close();
    }),
  );
  stopping = true;
  await watching;
  return clients;
}

function over() {
  return stopping || service.exited !== null || sent >= requestsWanted || seconds() * 1000 >= deadlineMs;
}

async function watch() {
  let nextHealth = 0;
  let nextSample = 0;
  let nextProgress = PROGRESS_EVERY_MS;
  while (!over()) {
    const now = seconds() * 1000;
    if (now >= nextHealth) {
      nextHealth = now + HEALTH_EVERY_MS;
      await askHealth();
    }
    if (now >= nextSample && service.exited === null) {
      nextSample = now + SAMPLE_EVERY_MS;
      trend.add(seconds(), sent, service.rssKilobytes());
    }
    if (now >= nextProgress) {
      nextProgress = now + PROGRESS_EVERY_MS;
      progress();
    }
    await sleep(50);
  }
}

async function askHealth() {
  health.asked++;
  const answer = await service.get('/healthz', HEALTH_LIMIT_MS);
  if (answer?.status !== 200) health.failed++;
  health.worstMs = Math.max(health.worstMs, answer?.ms ?? HEALTH_LIMIT_MS);
}

const told = new Set();

/** At once, so that a run that is broken off has told them. */
function tellViolations() {
  for (const violation of [...provider.violations, ...verdict.violations]) {
    if (told.has(violation)) continue;
    told.add(violation);
    console.log(`violation: ${violation}`);
  }
}

function progress() {
  const wanted = requestsWanted === Infinity ? '' : `/${requestsWanted}`;
  const bad = verdict.violations.length + provider.violations.length;
  tellViolations();
  const megabytes = Math.round((trend.samples.at(-1)?.kilobytes ?? 0) / 1024);
  const { whole, interrupted, refused, left } = verdict.counts;
  console.log(
    `${seconds().toFixed(0)}s ${sent}${wanted} requests, whole ${whole}, interrupted ${interrupted}, ` +
      `refused ${refused}, left ${left}, rss ${megabytes} MB, violations ${bad}`,
  );
}

/** After the load: everything must come to rest by itself; idle connections are closed from the provider's side. */
async function settle(base) {
  const until = performance.now() + IDLE_WITHIN_MS;
  let state;
  do {
    await sleep(250);
    provider.closeIdle();
    const samples = await service.metrics();
    state = {
      inflight: sumOf(samples, 'llm_proxy_upstream_inflight'),
      cooling: sumOf(samples, 'llm_proxy_upstream_cooling_seconds'),
      sockets: service.exited === null ? service.sockets() : -1,
      timers: timersIn(samples),
      samples,
    };
  } while (!atRest(state, base) && performance.now() < until && service.exited === null);
  return state;
}

/** The scrape itself holds one socket at most. */
function atRest({ inflight, sockets, timers, cooling }, base) {
  return inflight === 0 && sockets <= base.sockets && timers <= base.timers && cooling === 0;
}

function results({ base, clients, rest, errors, exitCode, leaked }) {
  const stale = clients.reduce((sum, client) => sum + client.stale, 0);
  const behaviours = {};
  for (const { counts } of clients) {
    for (const [name, count] of Object.entries(counts)) behaviours[name] = (behaviours[name] ?? 0) + count;
  }
  const { whole, interrupted, cut, refused, passed4xx, left } = verdict.counts;
  const attempts = sumOf(rest.samples, 'llm_proxy_requests_total');
  const timed = sumOf(rest.samples, 'llm_proxy_request_duration_seconds_count');
  const most = Object.entries(provider.most).map(
    ([id, count]) => `${id} ${count}/${limits[id] === Infinity ? '∞' : limits[id]}`,
  );
  return [
    {
      what: 'requests',
      measured: `${sent} in ${seconds().toFixed(0)} s, ${options.clients} clients, seed ${seed}`,
    },
    { what: 'clients', measured: counted(behaviours) },
    { what: 'providers', measured: `${counted(provider.counts)}; probes ${provider.probes}` },
    {
      what: 'answers',
      measured: `whole ${whole}, interrupted in band ${interrupted}, cut by framing ${cut}, refused ${refused}, 4xx passed ${passed4xx}, client left ${left}, kept-alive connection found closed ${stale}`,
    },
    must(
      'violations of truth (half an answer that looks whole, a changed text, no answer, a wrong form)',
      verdict.violations.length,
      0,
    ),
    {
      what: 'most exchanges at once at the provider',
      measured: most.join(', '),
      must: 'never above the limit',
      ok: provider.violations.length === 0,
    },
    must('slots held after the end', rest.inflight, 0),
    {
      what: 'open sockets after the end',
      measured: `${rest.sockets} (before ${base.sockets})`,
      must: 'as before',
      ok: rest.sockets <= base.sockets,
    },
    {
      what: 'active timers after the end',
      measured: `${rest.timers} (before ${base.timers})`,
      must: 'as before',
      ok: rest.timers <= base.timers,
    },
    {
      what: 'attempts counted once each',
      measured: `${attempts} counted, ${timed} timed`,
      must: 'equal',
      ok: attempts === timed,
    },
    {
      what: 'liveness',
      measured: `${health.asked} asked, ${health.failed} failed, slowest ${health.worstMs.toFixed(0)} ms`,
      must: 'none failed',
      ok: health.failed === 0,
    },
    memoryRow(),
    must('errors of the service in its log', errors.length, 0),
    { what: 'provider key in the log', measured: leaked ? 'yes' : 'no', must: 'no', ok: !leaked },
    must('exit code after SIGTERM', exitCode, 0),
    ...errors.slice(0, 3).map((line) => ({ what: 'log', measured: line.slice(0, 300).replaceAll('|', '/') })),
  ];
}

function memoryRow() {
  const slopes = trend.slopes();
  if (slopes === null) return { what: 'resident memory', measured: 'run too short' };
  const { kilobytesPerMinute, megabytesPerThousand, first, last, peak } = slopes;
  const span = `over ${slopes.seconds.toFixed(0)} s and ${slopes.requests} requests after the warm-up`;
  const row = {
    what: 'resident memory',
    measured: `${kilobytesPerMinute.toFixed(0)} kB/min, ${megabytesPerThousand.toFixed(3)} MB per 1000 requests ${span}; ${mb(first)} → ${mb(last)} MB, peak ${mb(peak)} MB`,
  };
  if (slopes.seconds < SLOPE_COUNTS_FROM_SECONDS) return row;
  const ok = megabytesPerThousand <= SLOPE_LIMIT_MB_PER_THOUSAND;
  return { ...row, must: `≤ ${SLOPE_LIMIT_MB_PER_THOUSAND} MB per 1000 requests`, ok };
}

const mb = (kilobytes) => Math.round(kilobytes / 1024);

function report(rows) {
  const text = table(rows);
  console.log(`\n${text}`);
  tellViolations();
  if (options.markdown !== undefined) writeBetweenMarkers(options.markdown, text, 'soak');
}

main().catch((error) => {
  console.error(error);
  process.exit(2);
});
