// Do big requests make others' streams stutter? 100 streams at 25 ms, a 10 MB request every second.
import { setTimeout as sleep } from 'node:timers/promises';
import { pictures, small } from '../lib/bodies.mjs';
import { cleanRound, ErrorCount, percentile, watchCores } from '../lib/measure.mjs';
import { startVerified } from '../lib/verify.mjs';
import { buildRequest, Load } from '../load.mjs';
import { summarise } from './cpu.mjs';

export const mixed = {
  name: 'mixed',
  title: '100 SSE streams at 25 ms while 10 MB requests come at 1/s, p99 of the event delay',
  unit: 'ms',
  run,
};

async function run(context) {
  const { provider, targets, rounds, quick, directory, progress } = context;
  const errors = new ErrorCount();
  const big = pictures({ model: 'bench-model', bytes: 10e6 });
  const direct = { name: 'direct', port: provider.port, path: '/mix/40/25/v1/chat/completions', headers: {} };
  const entries = [{ target: direct, rounds: [] }];

  const once = async (target, windowMs) => {
    const { port, path, headers } = target;
    const streams = new Load({
      port,
      connections: 100,
      staggerMs: 1000,
      expectStream: true,
      delays: true,
      requests: [buildRequest({ port, path, headers, body: small('bench-model', true) })],
    });
    const bigRequests = new Load({
      port,
      connections: 1,
      once: true,
      requests: [buildRequest({ port, path, headers, body: big })],
    });
    await streams.open();
    await bigRequests.open();
    streams.start();
    await sleep(1200);
    streams.delays.length = 0;
    const own = target.pid === undefined ? [] : [target.pid];
    const done = watchCores(own, { loadCore: true, loadPids: [process.pid, provider.pid] });
    const timer = setInterval(() => {
      if (bigRequests.inFlight === 0) bigRequests.start();
    }, 1000);
    await sleep(windowMs);
    clearInterval(timer);
    const seen = done();
    const delays = streams.delays.slice();
    await Promise.all([streams.stop(), bigRequests.stop()]);
    streams.close();
    bigRequests.close();
    errors.add(target.name, streams);
    errors.add(target.name, bigRequests);
    return { value: percentile(delays, 0.99) / 1000, p50: percentile(delays, 0.5) / 1000, ...seen };
  };

  try {
    for (const kind of targets) {
      const variant = { name: kind, kind, upstream: `${provider.origin}/mix/40/25/v1`, directory };
      const target = await startVerified(variant, small('bench-model', true), context, errors);
      if (target === null) continue;
      entries.push({ target, rounds: [] });
      progress(`warm-up ${kind}`);
      await once(target, quick ? 2500 : 5000);
    }
    for (let round = 1; round <= rounds; round += 1) {
      for (const entry of entries) {
        const result = await cleanRound(
          () => once(entry.target, quick ? 4100 : 8100),
          (dirty) =>
            progress(
              `round ${round} ${entry.target.name}: cores shared (${(dirty.foreign * 100).toFixed(1)} %), again`,
            ),
        );
        entry.rounds.push(result);
        progress(
          `round ${round}/${rounds} ${entry.target.name} p99 ${result.value.toFixed(1)} p50 ${result.p50.toFixed(1)}`,
        );
      }
    }
    return {
      variants: Object.fromEntries(entries.map((entry) => [entry.target.name, summarise(entry.rounds)])),
      errors,
    };
  } finally {
    for (const { target } of entries) await target.stop?.();
  }
}
