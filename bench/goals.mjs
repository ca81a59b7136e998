// What must hold, as data. A check compares two variants of one scenario in the same run: value(of) ≤ atMost × value(to).
// `metric` is the scenario's own one unless named (`peakRssKb`). `first` must hold now, `goal` is aimed at.
const check = (of, to, atMost, metric) => ({ of, to, atMost, metric });

export const goals = {
  'unary-400b': {
    first: [check('us', 'naive', 1.4)],
    goal: [check('us', 'naive', 0.95), check('us', 'portkey', 1 / 14)],
    seen: 'nginx 27 · F 113 · S 72 · Nest raw 99 · Portkey 1,527',
  },
  'unary-100kb': {
    first: [check('us', 'naive', 0.35)],
    goal: [check('us', 'naive', 0.15)],
    seen: 'F 2,521 · S 628 · Nest raw 300–380 · Portkey 5,096',
  },
  'unary-1mb': {
    first: [check('us', 'naive', 0.25)],
    goal: [check('us', 'naive', 0.12)],
    seen: 'nginx 555 · F 25,934 · S 3,246 · Nest raw 2,935 · Portkey 35,552',
  },
  'unary-10mb': {
    first: [check('us', 'naive', 0.2)],
    goal: [check('us', 'naive', 0.07), check('us', 'naive', 0.5, 'peakRssKb')],
    seen: 'nginx 4,600 · F 315,000 · S 32,000 · Nest raw 15,000 · Portkey 484,000',
  },
  sse: {
    first: [check('us', 'naive', 1.3)],
    goal: [check('us', 'naive', 1.0), check('us', 'portkey', 1 / 2.3)],
    seen: 'nginx 23 · F 61 · S 53 · Nest raw 60 · Portkey 146',
  },
  'sse-think': {
    first: [check('us', 'us-off', 1.6)],
    goal: [check('us', 'us-off', 1.2)],
    seen: 'parse everything 1.35 ×, byte level 1.0 ×',
  },
  latency: {
    first: [check('us', 'naive', 1.6)],
    goal: [check('us', 'naive', 0.9)],
    seen: 'F 139 · S 83 · nginx 53 · idiomatic Nest 314 · Portkey 1,346',
  },
  'streams-2000': {
    first: [check('us', 'naive', 1.2)],
    goal: [check('us', 'naive', 0.65), check('us', 'portkey', 1 / 6)],
    seen: 'nginx 17.6 · F 31 · S 25 · Nest raw 18–21 · Portkey 124',
  },
  mixed: { first: [], goal: [check('us', 'splice', 1.3)], seen: '–' },
  start: {
    first: [check('us', 'nest-empty', 1.5)],
    goal: [check('us', 'nest-empty', 1.15), check('us-consumers', 'us', 3)],
    seen: 'Fastify 600 · Nest 1,240',
  },
  'big-config': {
    first: [check('us', 'us-small', 1.1)],
    goal: [check('us', 'us-small', 1.03)],
    seen: 'must not grow',
  },
  consumers: {
    first: [check('us', 'us-one', 1.1)],
    goal: [check('us', 'us-one', 1.05)],
    seen: 'must not grow',
  },
  session: { first: [], goal: [check('us', 'us-off', 2.0)], seen: '–' },
  failover: { first: [], goal: [check('us', 'us-plain', 2.1)], seen: '–' },
};

/**
 * The ratio and whether it is within bounds; null where one side was not measured. The rounds are paired, since a noisy
 * machine drifts: the median of the ratios of neighbouring rounds, not the ratio of two medians.
 */
export function evaluate({ of, to, atMost, metric = 'median' }, variants) {
  const ratio = ratioOf(variants[of], variants[to], metric);
  return { ratio, reached: ratio === null ? null : ratio <= atMost };
}

export function ratioOf(ours, theirs, metric = 'median') {
  if (!Number.isFinite(ours?.[metric]) || !Number.isFinite(theirs?.[metric])) return null;
  if (metric !== 'median' || ours.rounds?.length !== theirs.rounds?.length)
    return ours[metric] / theirs[metric];
  return median(ours.rounds.map((value, i) => value / theirs.rounds[i]));
}

export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}
