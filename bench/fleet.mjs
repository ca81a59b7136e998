#!/usr/bin/env node
// The figures of a fleet: four processes of the built service, one Redis, one slot. Needs redis-server.
// npm run fleet-bench [-- --quick] [--requests 10000] [--seed 1] [--state memory] [--markdown docs/reliability.md]
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { quantile } from './failures/latency.mjs';
import { PLANS } from './failures/one-slot.mjs';
import { Added } from './fleet/added.mjs';
import { Arrivals } from './fleet/arrivals.mjs';
import { configurationText } from './fleet/configuration.mjs';
import { Crowd } from './fleet/crowd.mjs';
import { Kills } from './fleet/kills.mjs';
import { OUTAGES, Outages, SHORT_OUTAGES } from './fleet/outages.mjs';
import { PREFIX, RedisProcess } from './fleet/redis.mjs';
import { held, Replica } from './fleet/replicas.mjs';
import { asked } from './soak/options.mjs';
import { FakeProvider } from './soak/provider.mjs';
import { Random } from './soak/random.mjs';
import { counted, must, table, writeBetweenMarkers } from './soak/report.mjs';
import { nodeOf } from './soak/service.mjs';
import { Verdict } from './soak/verdict.mjs';
import { readOptions } from './lib/options.mjs';

const ROOT = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const REPLICAS = 4;
const CLIENTS_PER_REPLICA = 8;
const LEASE_MS = 15_000;
/** Beyond the lease: who waits looks once it lapses, at the latest after a second. */
const LOOK_MS = 1000;

const options = readOptions(import.meta.url, {
  quick: { type: 'boolean', default: false },
  requests: { type: 'string' },
  seed: { type: 'string', default: '1' },
  state: { type: 'string', default: 'redis' },
  markdown: { type: 'string' },
  main: { type: 'string', default: path.join(ROOT, 'dist/main.js') },
});
const amount = options.quick
  ? { requests: 1000, kills: 1, pairs: 1000 }
  : { requests: 10_000, kills: 5, pairs: 5000 };
amount.requests = asked(options.requests, amount.requests);
const seed = asked(options.seed, 1);
if (!['redis', 'memory'].includes(options.state)) throw new Error('--state is redis or memory');
const shares = options.state === 'redis';

const started = [];
process.on('exit', () => {
  for (const one of started) one.cleanUp();
});
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(130));
const startedAt = performance.now();
const tell = (text) => console.log(`${((performance.now() - startedAt) / 1000).toFixed(0)}s ${text}`);

async function main() {
  const redis = shares ? new RedisProcess() : null;
  if (redis !== null) {
    started.push(redis);
    await redis.start();
  }
  const provider = new FakeProvider(new Random(seed + 1), { one: 1 }, PLANS);
  const verdict = new Verdict(provider);
  const arrivals = new Arrivals(provider);
  const added = new Added();
  const ports = { oneSlot: await provider.listen(), healthy: await added.listen() };
  const launch = (redisPort, { onError = 'local', prefix = PREFIX } = {}) => ({
    node: nodeOf(ROOT),
    nodeArgs: [],
    main: options.main,
    configuration: configurationText({ ...ports, redisPort, prefix, onError }),
  });
  const replica = async (name, how) => {
    const one = new Replica(name, how);
    started.push(one);
    await one.start();
    return one;
  };
  const several = async (name, how) => {
    const all = [];
    for (let i = 1; i <= REPLICAS; i++) all.push(await replica(`${name}${i}`, how));
    return all;
  };
  const replicas = await several('r', launch(redis?.port ?? null));

  const crowd = new Crowd(new Random(seed), verdict, replicas, CLIENTS_PER_REPLICA);
  const parts = [];
  /** The crowd goes on until `act` has ended; what it left behind is counted. */
  const part = async (name, act, enough) => {
    tell(name);
    const before = { overlaps: provider.violations.length, sent: crowd.sent };
    let done = false;
    const acting = act().finally(() => (done = true));
    const ticking = setInterval(() => tell(`${name}: ${crowd.sent - before.sent} requests`), 10_000);
    await Promise.all([acting, crowd.run(() => (enough === undefined ? done : enough()))]);
    clearInterval(ticking);
    const left = await held(crowd.replicas, redis);
    const overlaps = provider.violations.length - before.overlaps;
    parts.push({ name, overlaps, sent: crowd.sent - before.sent, left });
  };

  await part(
    'crowd',
    () => Promise.resolve(),
    () => crowd.sent >= amount.requests,
  );
  const afterCrowd = { exchanges: sum(provider.counts), bySender: { ...arrivals.bySender } };
  const kills = new Kills(new Random(seed + 2), arrivals, replicas);
  const outages = new Outages(new Random(seed + 3), redis, arrivals, replicas);
  if (redis !== null) {
    await part('SIGKILL', () => kills.run(amount.kills, tell));
    await part('Redis away', () => outages.run(OUTAGES, tell));
  }
  const exitCodes = await Promise.all(replicas.map((one) => one.stop()));
  const careful = redis === null ? [] : ['reject', 'strict'];
  for (const onError of careful) {
    const others = await several(`${onError}-`, launch(redis.port, { onError }));
    replicas.push(...others);
    crowd.replicas = others;
    const away = new Outages(new Random(seed + 4), redis, arrivals, others);
    await part(`on_error: ${onError}, Redis away`, () => away.run(SHORT_OUTAGES, tell));
    outages.results.push(...away.results.map((one) => ({ ...one, name: `${onError}, ${one.name}` })));
    exitCodes.push(...(await Promise.all(others.map((one) => one.stop()))));
  }
  await provider.close();
  let lone = [];
  if (redis !== null) {
    tell('latency');
    lone = [
      await replica('memory', launch(null)),
      await replica('shared', launch(redis.port, { prefix: 'alone:' })),
    ];
    await added.run({ memory: lone[0], shared: lone[1], redis }, amount.pairs);
    exitCodes.push(...(await Promise.all(lone.map((one) => one.stop()))));
    await redis.down();
  }
  added.close();
  const errors = [...replicas, ...lone].flatMap((one) => one.errors);
  const seen = { provider, verdict, crowd, parts, afterCrowd, kills, outages, added, errors, exitCodes };
  report(rows(seen), [...provider.violations, ...verdict.violations, ...errors]);
}

function rows({ provider, verdict, crowd, parts, afterCrowd, kills, outages, added, errors, exitCodes }) {
  const { whole, interrupted, refused, left, passed4xx, cut } = verdict.counts;
  const list = [
    {
      what: 'the crowd',
      measured: `${parts[0].sent} requests at ${REPLICAS} replicas, ${afterCrowd.exchanges} exchanges at the upstream, by replica ${counted(afterCrowd.bySender)}`,
    },
    {
      what: 'all parts: answers',
      measured: `whole ${whole}, error event ${interrupted}, cut JSON ${cut}, refused ${refused + passed4xx}, client left ${left}, lost with a killed process ${crowd.lost}`,
    },
    { what: 'all parts: clients', measured: counted(crowd.behaviours) },
    { what: 'all parts: upstream', measured: counted(provider.counts) },
  ];
  for (const { left: held, name, overlaps, sent } of parts) {
    const leases = shares ? ', leases' : '';
    list.push(
      must(`${name}: overlaps, over ${sent} requests`, overlaps, 0),
      must(
        `${name}: in flight and waiting at each replica${leases} after the end`,
        [...held.inflight, ...held.waiting, ...(shares ? [held.leases.length] : [])].join(' '),
        Array(REPLICAS * 2 + (shares ? 1 : 0))
          .fill(0)
          .join(' '),
      ),
    );
  }
  list.push(
    must('cut streams that ended without an error event', verdict.untold, 0),
    must('other answers that are not true, or never came', verdict.violations.length - verdict.untold, 0),
  );
  if (shares) list.push(...lossRows(kills, outages), ...latencyRows(added));
  list.push(
    must('errors of the service in its log', errors.length, 0),
    must('exit codes after SIGTERM', exitCodes.join(' '), exitCodes.map(() => 0).join(' ')),
  );
  return list;
}

function lossRows({ timesMs }, { results }) {
  return [
    {
      what: 'from SIGKILL of the replica that has the slot to the next exchange there',
      measured: `median ${seconds(quantile(timesMs, 0.5))}, max ${seconds(Math.max(...timesMs))}, of ${timesMs.length}`,
      ...within(timesMs, LEASE_MS + LOOK_MS),
    },
    ...results.flatMap(({ allMs, empty, firstMs, name, users }) => [
      {
        what: `Redis away (${name}): replicas that used the slot meanwhile`,
        measured: users,
        must: 'at most 1',
        ok: users <= 1,
      },
      {
        what: `Redis away (${name}): from its return until the slot was in other hands; until all ${REPLICAS} replicas had had it`,
        measured: `${seconds(firstMs)}; ${seconds(allMs)}`,
        ...within([firstMs], empty ? LEASE_MS + 2 * LOOK_MS : 2 * LOOK_MS),
        ...(Number.isFinite(allMs) ? {} : { ok: false }),
      },
    ]),
  ];
}

function latencyRows({ failed, memory, redis, roundTrips }) {
  const ms = (times, share) => `${quantile(times, share).toFixed(2)} ms`;
  const addedMs = quantile(redis, 0.5) - quantile(memory, 0.5);
  return [
    {
      what: 'added by Redis on loopback to a request for a limit of 1, median',
      measured: `${addedMs.toFixed(2)} ms (${ms(redis, 0.5)} against ${ms(memory, 0.5)} with memory; p99 ${ms(redis, 0.99)} against ${ms(memory, 0.99)}); ${memory.length} pairs, one request at a time`,
    },
    {
      what: 'round trips to Redis for each such request, with what runs beside it',
      measured: roundTrips.toFixed(3),
      must: 'about 2',
      ok: roundTrips < 2.1,
    },
    must('requests of these rows that failed', failed, 0),
  ];
}

function within(timesMs, mostMs) {
  return { must: `at most ${mostMs / 1000} s`, ok: timesMs.every((time) => time <= mostMs) };
}

function seconds(ms) {
  return `${(ms / 1000).toFixed(2)} s`;
}

function sum(counts) {
  return Object.values(counts).reduce((total, count) => total + count, 0);
}

function report(result, findings) {
  const text = table(result);
  const load = os.loadavg()[0].toFixed(1);
  const note =
    `${options.quick ? 'A quick run. ' : ''}${shares ? '' : 'Nothing is shared. '}Node ${process.version}, ${os.cpus()[0]?.model ?? 'unknown'} ` +
    `(${os.availableParallelism()} cores, load average ${load} at the end), ${new Date().toISOString().slice(0, 10)}, ` +
    `seed ${seed}, ${((performance.now() - startedAt) / 1000).toFixed(0)} s. Clients, upstream, ${shares ? 'Redis and ' : ''}all replicas share the machine: times are those of a machine with that load.`;
  console.log(`\n${note}\n\n${text}`);
  for (const finding of findings.slice(0, 60)) console.log(`found: ${finding}`);
  if (options.markdown !== undefined)
    writeBetweenMarkers(options.markdown, `\n${note}\n\n${text}\n`, 'fleet');
  process.exit(result.every(({ ok }) => ok !== false) ? 0 : 1);
}

main().catch((error) => {
  console.error(error);
  process.exit(2);
});
