// Time that a proxy adds to an answer, one request at a time.
import { setTimeout as sleep } from 'node:timers/promises';
import { small } from '../lib/bodies.mjs';
import { cleanRound, ErrorCount, percentile, warmUp, watchCores } from '../lib/measure.mjs';
import { startVerified } from '../lib/verify.mjs';
import { buildRequest, Load } from '../load.mjs';
import { summarise } from './cpu.mjs';

export const latency = {
  name: 'latency',
  title: 'added time to answer, 1 connection, p50',
  unit: 'µs added',
  run,
};

async function run(context) {
  const { provider, targets, rounds, quick, directory, progress } = context;
  const errors = new ErrorCount();
  const body = small('bench-model');
  const options = ({ port, headers = {}, path }) => ({
    port,
    connections: 1,
    latencies: true,
    requests: [buildRequest({ port, headers, path, body })],
  });
  const direct = { name: 'direct', port: provider.port, path: '/unary/v1/chat/completions' };
  const entries = [];
  const windowMs = quick ? 700 : 1500;

  const once = async (target) => {
    const load = new Load(options(target));
    await load.open();
    load.start();
    await sleep(150);
    load.latencies.length = 0;
    const own = target.pid === undefined ? [] : [target.pid];
    const done = watchCores(own, { loadCore: true, loadPids: [process.pid, provider.pid] });
    await sleep(windowMs);
    const seen = done();
    await load.stop();
    load.close();
    errors.add(target.name, load);
    return { value: percentile(load.latencies, 0.5) * 1000, ...seen };
  };

  try {
    for (const kind of targets) {
      const variant = { name: kind, kind, upstream: `${provider.origin}/unary/v1`, directory };
      const target = await startVerified(variant, body, context, errors);
      if (target === null) continue;
      entries.push({ target, rounds: [] });
      progress(`warm-up ${kind}`);
      const warm = ({ port, headers }) => ({
        ...options({ port, headers }),
        connections: 8,
        latencies: false,
      });
      const limits = quick ? { minimumMs: 2000, maximumMs: 3000 } : { minimumMs: 4000, maximumMs: 6000 };
      await warmUp(target, warm, { ...limits, unitsOf: (load) => load.completed, errors });
    }
    const directRounds = [];
    for (let round = 1; round <= rounds; round += 1) {
      const base = await cleanRound(() => once(direct));
      directRounds.push(base);
      for (const entry of entries) {
        const result = await cleanRound(() => once(entry.target));
        entry.rounds.push({ ...result, value: result.value - base.value });
        progress(`round ${round}/${rounds} ${entry.target.name} +${(result.value - base.value).toFixed(1)}`);
      }
    }
    return {
      variants: Object.fromEntries(entries.map((entry) => [entry.target.name, summarise(entry.rounds)])),
      notes: { directP50: summarise(directRounds) },
      errors,
    };
  } finally {
    for (const { target } of entries) await target.stop();
  }
}
