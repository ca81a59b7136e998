// Memory that an open stream costs: resident set with 2,000 slow streams minus the one before, in a fresh process.
import { setTimeout as sleep } from 'node:timers/promises';
import { small } from '../lib/bodies.mjs';
import { median } from '../goals.mjs';
import { ErrorCount } from '../lib/measure.mjs';
import { memoryOf, openFileLimit } from '../lib/proc.mjs';
import { startTarget } from '../lib/targets.mjs';
import { startVerified } from '../lib/verify.mjs';
import { buildRequest, Load } from '../load.mjs';
import { summarise } from './cpu.mjs';

const STREAMS = 2000;
/** A shared machine may need several seconds until all streams are open. */
const OPEN_LIMIT_MS = 30_000;

export const streams = {
  name: 'streams-2000',
  title: '2,000 streams at 1 event/s',
  unit: 'kB RSS per stream',
  run,
};

async function run(context) {
  const { provider, rounds, quick, directory, progress, warn } = context;
  const errors = new ErrorCount();
  const needed = 2 * STREAMS + 200;
  if (openFileLimit() < needed) {
    warn(`ulimit -n is ${openFileLimit()}; 2,000 streams need ${needed} in the proxy: raise it`);
    errors.note('limit', 1, ['too few open files allowed']);
    return { variants: {}, errors };
  }
  const upstream = `${provider.origin}/sse/1000000/1000/v1`;
  const targets = [];
  for (const kind of context.targets) {
    // The same question to a short stream first: a peer that cannot stream is left out.
    const variant = { name: kind, kind, upstream: `${provider.origin}/sse/3/5/v1`, directory };
    const target = await startVerified(variant, small('bench-model', true), context, errors);
    if (target !== null) targets.push(kind);
    await target?.stop();
  }
  const samples = Object.fromEntries(targets.map((kind) => [kind, []]));
  for (let round = 1; round <= rounds; round += 1) {
    for (const kind of targets) {
      samples[kind].push(await once(kind));
      progress(`round ${round}/${rounds} ${kind} ${samples[kind].at(-1).value.toFixed(1)} kB`);
    }
  }
  return {
    variants: Object.fromEntries(
      targets.map((kind) => [
        kind,
        {
          ...summarise(samples[kind]),
          peakRssKb: Math.max(...samples[kind].map((sample) => sample.peakRssKb)),
        },
      ]),
    ),
    errors,
  };

  async function once(kind) {
    const target = await startTarget({ name: kind, upstream, directory });
    const load = (connections) =>
      new Load({
        port: target.port,
        connections,
        staggerMs: connections,
        expectStream: true,
        requests: [
          buildRequest({ port: target.port, headers: target.headers, body: small('bench-model', true) }),
        ],
      });
    try {
      const warm = load(200);
      await warm.open();
      warm.start();
      await sleep(3000);
      warm.close();
      errors.add(kind, warm);
      await sleep(1500);
      const before = memoryOf(target.pid);
      const full = load(STREAMS);
      await full.open();
      full.start();
      const openedBy = performance.now() + OPEN_LIMIT_MS;
      while ((await provider.stats()).active < STREAMS && performance.now() < openedBy) await sleep(100);
      await sleep(1500);
      const eventsBefore = full.events;
      const seen = [];
      const holdSeconds = quick ? 4 : 8;
      for (let second = 0; second < holdSeconds; second += 1) {
        await sleep(1000);
        seen.push(memoryOf(target.pid));
      }
      const eventsPerSecond = (full.events - eventsBefore) / holdSeconds;
      if (eventsPerSecond < STREAMS * 0.9) {
        const { active } = await provider.stats();
        full.fail(
          `only ${eventsPerSecond} events/s from ${STREAMS} streams: ${full.inFlight} asked, ${active} at the provider`,
        );
      }
      full.close();
      errors.add(kind, full);
      const during = median(seen.slice(seen.length >> 1));
      return { value: (during - before) / STREAMS, clean: true, peakRssKb: memoryOf(target.pid, 'VmHWM') };
    } finally {
      await target.stop({ graceMs: 1500 });
    }
  }
}
