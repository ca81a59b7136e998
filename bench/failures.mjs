#!/usr/bin/env node
// The figures of failure: the built service against upstreams that break, stall, die and come back.
// npm run failure-bench [-- --quick] [--requests 10000] [--seed 1] [--markdown docs/reliability.md]
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { configurationText, PROBE_INTERVAL_MS, REST_CAP_MS } from './failures/configuration.mjs';
import { Continuation } from './failures/continuation.mjs';
import { Latency, quantile } from './failures/latency.mjs';
import { OneSlot } from './failures/one-slot.mjs';
import { ASK_EVERY_MS, Mortal } from './failures/recovery.mjs';
import { asked } from './soak/options.mjs';
import { Random } from './soak/random.mjs';
import { counted, must, table, writeBetweenMarkers } from './soak/report.mjs';
import { nodeOf, Service, sumOf } from './soak/service.mjs';
import { readOptions } from './lib/options.mjs';

const ROOT = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const IDLE_WITHIN_MS = 15_000;

const options = readOptions(import.meta.url, {
  quick: { type: 'boolean', default: false },
  requests: { type: 'string' },
  seed: { type: 'string', default: '1' },
  markdown: { type: 'string' },
  main: { type: 'string', default: path.join(ROOT, 'dist/main.js') },
});
const amount = options.quick
  ? { requests: 1000, streams: 100, mortals: 3, rounds: 1, pairs: 500 }
  : { requests: 10_000, streams: 800, mortals: 5, rounds: 6, pairs: 5000 };
amount.requests = asked(options.requests, amount.requests);
const seed = asked(options.seed, 1);

const service = new Service();
process.on('exit', () => service.cleanUp());
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(130));
const startedAt = performance.now();
const tell = (text) => console.log(`${((performance.now() - startedAt) / 1000).toFixed(0)}s ${text}`);

async function main() {
  const oneSlot = new OneSlot(new Random(seed), new Random(seed + 1));
  const continuation = new Continuation(new Random(seed + 2));
  const latency = new Latency();
  const mortals = [];
  for (const recovery of ['probe', 'half_open']) {
    for (let i = 0; i < amount.mortals; i++)
      mortals.push(new Mortal(`${recovery}-${i}`, recovery, new Random(seed + 3 + mortals.length)));
  }
  await Promise.all(mortals.map((mortal) => mortal.listen()));
  const [oneSlotPort, prefill, healthy] = [
    await oneSlot.provider.listen(),
    await continuation.listen(),
    await latency.listen(),
  ];
  await service.start({
    node: nodeOf(ROOT),
    nodeArgs: [],
    main: options.main,
    configuration: configurationText({ oneSlot: oneSlotPort, prefill, healthy, mortals }),
  });
  const { port } = service;
  tell('one slot');
  await oneSlot.run(port, amount.requests, tell);
  tell('continued streams');
  await continuation.run(port, amount.streams, tell);
  tell('recovery');
  await Promise.all(mortals.map((mortal) => mortal.live(port, amount.rounds)));
  tell('latency');
  await latency.run(port, amount.pairs);
  const held = await slotsHeld();
  const errors = service.errors;
  const exitCode = await service.stop();
  await oneSlot.provider.close();
  for (const server of [continuation, latency, ...mortals]) server.close();
  report(rows({ oneSlot, continuation, mortals, latency, held, errors, exitCode }), {
    findings: [
      ...oneSlot.provider.violations,
      ...oneSlot.verdict.violations,
      ...continuation.found,
      ...errors,
    ],
  });
}

/** In flight when all clients have gone; what ends late is given its time. */
async function slotsHeld() {
  const until = performance.now() + IDLE_WITHIN_MS;
  let samples;
  do {
    await sleep(100);
    samples = await service.metrics();
  } while (sumOf(samples, 'llm_proxy_upstream_inflight') !== 0 && performance.now() < until);
  const known = [...samples.keys()].some((key) => key.startsWith('llm_proxy_upstream_inflight{'));
  return known ? sumOf(samples, 'llm_proxy_upstream_inflight') : NaN;
}

function rows({ oneSlot, continuation, mortals, latency, held, errors, exitCode }) {
  const { provider, verdict } = oneSlot;
  const exchanges = Object.values(provider.counts).reduce((sum, count) => sum + count, 0);
  const { whole, interrupted, refused, left } = verdict.counts;
  const [direct, through] = [latency.direct, latency.through];
  return [
    {
      what: 'one slot: the run',
      measured: `${oneSlot.sent} requests, ${exchanges} exchanges at the upstream; whole ${whole}, error event ${interrupted}, refused ${refused}, client left ${left}`,
    },
    { what: 'one slot: clients', measured: counted(oneSlot.behaviours) },
    { what: 'one slot: upstream', measured: counted(provider.counts) },
    must('one slot: overlaps', provider.violations.length, 0),
    must('slots held after the end', held, 0),
    must('cut streams that ended without an error event', verdict.untold + continuation.untold, 0),
    must('other answers that are not true', verdict.violations.length - verdict.untold, 0),
    {
      what: '`on_interrupt: continue`: the run',
      measured: `${continuation.streams} streams; continued to the end ${continuation.continued}, cut again and told ${continuation.interrupted}, broken before any text and asked anew ${continuation.anew}, refused ${continuation.refused}; ${counted(continuation.breaks)}`,
    },
    must('`continue`: duplicate characters', continuation.duplicate, 0),
    must('`continue`: lost characters', continuation.lost, 0),
    must('`continue`: texts in a wrong order, or begun wrongly', continuation.wrong, 0),
    recoveryRow(mortals, 'probe', `every ${PROBE_INTERVAL_MS} ms`),
    recoveryRow(mortals, 'half_open', `rests of 1 s to ${REST_CAP_MS / 1000} s`),
    {
      what: 'added p99 at light load',
      measured: `${added(direct, through, 0.99)}; the median: ${added(direct, through, 0.5)}; ${direct.length} pairs, one request at a time`,
    },
    must('requests of the last row that failed', latency.failed, 0),
    must('errors of the service in its log', errors.length, 0),
    must('exit code after SIGTERM', exitCode, 0),
  ];
}

function recoveryRow(mortals, recovery, how) {
  const times = mortals.filter((mortal) => mortal.recovery === recovery).flatMap(({ timesMs }) => timesMs);
  const seconds = (part) => (quantile(times, part) / 1000).toFixed(2);
  const row = {
    what: `from recovery to the first request, \`recovery: ${recovery}\` (${how})`,
    measured: `median ${seconds(0.5)} s, max ${seconds(1)} s, of ${times.length}; a client asks every ${ASK_EVERY_MS} ms`,
  };
  return times.every(Number.isFinite) ? row : { ...row, must: 'comes back', ok: false };
}

function added(direct, through, part) {
  const [less, more] = [quantile(direct, part), quantile(through, part)];
  return `${(more - less).toFixed(2)} ms (${more.toFixed(2)} against ${less.toFixed(2)} direct)`;
}

function report(result, { findings }) {
  const text = table(result);
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(0);
  const load = os.loadavg()[0].toFixed(1);
  const note =
    `${options.quick ? 'A quick run. ' : ''}Node ${process.version}, ${os.cpus()[0]?.model ?? 'unknown'} ` +
    `(${os.availableParallelism()} cores, load average ${load} at the end), ${new Date().toISOString().slice(0, 10)}, ` +
    `seed ${seed}, ${seconds} s. Clients, upstreams and gateway share the machine: times are those of a machine with that load.`;
  console.log(`\n${note}\n\n${text}`);
  for (const finding of findings.slice(0, 60)) console.log(`found: ${finding}`);
  if (options.markdown !== undefined)
    writeBetweenMarkers(options.markdown, `\n${note}\n\n${text}\n`, 'failures');
  process.exit(result.every(({ ok }) => ok !== false) ? 0 : 1);
}

main().catch((error) => {
  console.error(error);
  process.exit(2);
});
