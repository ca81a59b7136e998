// Every scenario whose metric is CPU per request or per event.
import { buildRequest } from '../load.mjs';
import { median } from '../goals.mjs';
import { conversation, pictures, small } from '../lib/bodies.mjs';
import { startVerified } from '../lib/verify.mjs';
import { cleanRound, cpuWindow, ErrorCount, warmUp } from '../lib/measure.mjs';
import { memoryOf } from '../lib/proc.mjs';
import { big, consumers, failover, standard } from '../lib/us-config.mjs';

const MODEL = 'bench-model';
const perRequest = (load) => load.completed;

/** The proxies to compare, all before the same answer. */
const peers = (mode) => (context) =>
  context.targets.map((kind) => ({ name: kind, kind, upstream: `${context.provider.origin}/${mode}/v1` }));

/**
 * Several instances of our own; left out when `us` is not measured. Where they should be equal, `anew` gives each round processes
 * of its own: one process is some percent quicker than the next, by what the JIT made of it.
 */
const ours = (build) => (context) =>
  context.targets.includes('us') ? build(context).map((variant) => ({ kind: 'us', ...variant })) : [];

/** One for each body, or for each key where a variant has some. */
function requests(target, bodies, keys) {
  const { port, headers } = target;
  if (keys === undefined) return bodies.map((body) => buildRequest({ port, headers, body }));
  return keys.map((key, i) => buildRequest({ port, headers, key, body: bodies[i % bodies.length] }));
}

function unary(name, title, { bytes, connections, body, windowMs }) {
  return {
    name,
    title,
    unit: 'µs CPU per request',
    variants: peers('unary'),
    bodies: () => [body(bytes)],
    load: { connections },
    windowMs,
  };
}

const streamTitle = 'SSE, 40 events at 25 ms, 200 streams';
const stream = {
  load: { connections: 200, staggerMs: 1000, expectStream: true },
  windowMs: 3000,
  rampMs: 1300,
};

const scenarios = [
  unary('unary-400b', 'unary, 400 B body, 64 connections', {
    connections: 64,
    body: () => small(MODEL),
    windowMs: 2000,
  }),
  unary('unary-100kb', 'unary, 100 kB body, 16 connections', {
    bytes: 100e3,
    connections: 16,
    body: (bytes) => conversation({ model: MODEL, bytes, count: 60 }),
    windowMs: 2500,
  }),
  unary('unary-1mb', 'unary, 1 MB body, 4 connections', {
    bytes: 1e6,
    connections: 4,
    body: (bytes) => conversation({ model: MODEL, bytes, count: 300 }),
    windowMs: 3000,
  }),
  unary('unary-10mb', 'unary, 10 MB body (pictures), 2 connections', {
    bytes: 10e6,
    connections: 2,
    body: (bytes) => pictures({ model: MODEL, bytes }),
    windowMs: 4000,
  }),
  {
    name: 'sse',
    title: streamTitle,
    unit: 'µs CPU per event',
    variants: peers('sse/40/25'),
    bodies: () => [small(MODEL, true)],
    ...stream,
    perEvent: true,
    expectEvents: 41,
  },
  {
    name: 'sse-think',
    title: `${streamTitle}, half of it a thought: split against pass-through`,
    unit: 'µs CPU per event',
    variants: ours(({ provider }) => {
      const upstream = `${provider.origin}/think/40/25/v1`;
      return [
        { name: 'us', upstream, config: standard({ upstream, think: 'split' }) },
        { name: 'us-off', upstream, config: standard({ upstream }) },
      ];
    }),
    bodies: () => [small(MODEL, true)],
    ...stream,
    perEvent: true,
  },
  {
    name: 'big-config',
    title: '2,000 upstreams and 10,000 models against 12 and 10, the same traffic on 8 models of 8 providers',
    unit: 'µs CPU per request',
    variants: ours(({ provider }) => {
      const upstream = `${provider.origin}/unary/v1`;
      return [
        { name: 'us', upstream, config: big({ upstream }) },
        { name: 'us-small', upstream, config: big({ upstream, upstreams: 15, models: 11 }) },
      ];
    }),
    // Model i at provider i in both, spread over the large file: only the size of the file differs.
    bodies: (variant) =>
      Array.from({ length: 8 }, (_, i) =>
        small(`big-${variant.name === 'us' ? i * 241 + 1997 * (i % 5) : i}`),
      ),
    anew: true,
    load: { connections: 64 },
    windowMs: 2500,
  },
  {
    name: 'consumers',
    title: '10,000 consumers of 5 keys each, 1,024 of them asking, against one',
    unit: 'µs CPU per request',
    variants: ours(({ provider }) => {
      const upstream = `${provider.origin}/unary/v1`;
      const variant = (name, count) => ({ name, upstream, ...consumers({ upstream, count, asking: 1024 }) });
      return [variant('us', 10_000), variant('us-one', 1)];
    }),
    bodies: () => [small(MODEL)],
    anew: true,
    load: { connections: 64 },
    windowMs: 2500,
  },
  {
    name: 'session',
    title: 'session_header, history of 200 messages / 200 kB, against the same without',
    unit: 'µs CPU per request',
    variants: ours(({ provider }) => {
      const upstream = `${provider.origin}/unary/v1`;
      return [
        { name: 'us', upstream, config: standard({ upstream, sessionHeader: 'x-bench-session' }) },
        { name: 'us-off', upstream },
      ];
    }),
    // Different conversations, each with several next turns: no answer can come from having seen these very bytes.
    bodies: () =>
      Array.from({ length: 48 }, (_, i) =>
        conversation({ model: MODEL, bytes: 200e3, count: 200, seed: `${i % 12}-` }).replace(
          /\}\],"temperature"/,
          `},{"role":"user","content":"and turn ${i}?"}],"temperature"`,
        ),
      ),
    load: { connections: 16 },
    windowMs: 3000,
  },
  {
    name: 'failover',
    title: 'failover: the first upstream answers 503, the second 200, against a plain request',
    unit: 'µs CPU per request',
    variants: ours(({ provider }) => {
      const config = failover({ origin: provider.origin });
      return [
        { name: 'us', config },
        { name: 'us-plain', config },
      ];
    }),
    bodies: (variant) => [small(variant.name === 'us' ? 'bench-failover' : 'bench-plain')],
    load: { connections: 64 },
    windowMs: 2500,
  },
];

export const cpuScenarios = scenarios.map((scenario) => ({
  ...scenario,
  run: (context) => run(scenario, context),
}));

/** The load of one variant, for `bench/profile.mjs` too. */
export function loadOf(scenario, variant) {
  const bodies = scenario.bodies(variant);
  return (target) => ({
    ...scenario.load,
    port: target.port,
    requests: requests(target, bodies, variant.keys),
    expectEvents: target.kind === 'portkey' ? undefined : scenario.expectEvents,
  });
}

export function unitsOf(scenario, provider) {
  return scenario.perEvent ? async () => (await provider.stats()).events : perRequest;
}

async function run(scenario, context) {
  const { provider, rounds, quick, directory, progress } = context;
  const errors = new ErrorCount();
  const variants = scenario.variants(context);
  const entries = [];
  const units = unitsOf(scenario, provider);
  const begin = async (entry) => {
    const { variant, makeLoad } = entry;
    entry.target = await startVerified(
      { ...variant, directory },
      scenario.bodies(variant)[0],
      context,
      errors,
    );
    if (entry.target === null) return false;
    progress(`warm-up ${variant.name}`);
    const limits = quick ? { minimumMs: 2000, maximumMs: 3000 } : { minimumMs: 4000, maximumMs: 6000 };
    await warmUp(entry.target, makeLoad, { ...limits, unitsOf: units, errors });
    return true;
  };
  try {
    for (const variant of variants) {
      const entry = { variant, makeLoad: loadOf(scenario, variant), target: null, rounds: [] };
      if (await begin(entry)) entries.push(entry);
    }
    const windowMs = quick ? scenario.windowMs / 2 : scenario.windowMs;
    for (let round = 1; round <= rounds; round += 1) {
      for (const entry of entries) {
        if (scenario.anew === true && round > 1) {
          await entry.target?.stop();
          if (!(await begin(entry))) continue;
        }
        const { target, makeLoad } = entry;
        const result = await cleanRound(
          () => cpuWindow(target, makeLoad, { windowMs, rampMs: scenario.rampMs, unitsOf: units, errors }),
          (dirty) =>
            progress(`round ${round} ${target.name}: core shared (${percent(dirty.foreign)}), again`),
        );
        entry.rounds.push(result);
        progress(
          `round ${round}/${rounds} ${target.name} ${result.value.toFixed(1)} (${result.units} units)`,
        );
      }
    }
    return {
      variants: Object.fromEntries(entries.map((entry) => [entry.variant.name, summary(entry)])),
      errors,
    };
  } finally {
    for (const { target } of entries) await target?.stop();
  }
}

function summary({ target, rounds }) {
  return {
    ...summarise(rounds),
    units: rounds.reduce((sum, round) => sum + round.units, 0),
    perSecond: median(rounds.map((round) => round.perSecond)),
    peakRssKb: memoryOf(target.pid, 'VmHWM'),
  };
}

/** Median and spread of rounds; `unclean` counts those that stayed disturbed. */
export function summarise(rounds) {
  const values = rounds.map((round) => round.value);
  return {
    median: median(values),
    minimum: Math.min(...values),
    maximum: Math.max(...values),
    rounds: values,
    unclean: rounds.filter((round) => !round.clean).length,
  };
}

function percent(share) {
  return `${(share * 100).toFixed(1)} %`;
}
