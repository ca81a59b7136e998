// Rounds: warm-up, a window of load with the CPU taken before and after, repeated when something else used the core.
import { setTimeout as sleep } from 'node:timers/promises';
import { Load } from '../load.mjs';
import { canPin, coreBusyNs, cores, cpuBetween, cpuOf } from './proc.mjs';

/** How often a spoilt round is tried at most; `--tries`. */
export const limits = { tries: 6 };
/** Foreign time on the proxy's core above this share of the window spoils a round. */
const FOREIGN_LIMIT = 0.03;
const FOREIGN_FLOOR_NS = 40e6;
const CALM_WINDOW_MS = 250;
const CALM_LIMIT_MS = 5000;

export function percentile(values, share) {
  const sorted = Float64Array.from(values).sort();
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
}

/** Watches who else used a core between `watch` and `read`. */
export function watchCores(ownPids, { loadCore = false, loadPids = [] } = {}) {
  const read = (core, pids) => ({ busy: coreBusyNs(core), own: pids.map((pid) => cpuOf(pid)) });
  const groups = [[cores.proxy, ownPids]];
  if (loadCore) groups.push([cores.load, loadPids]);
  const before = groups.map(([core, pids]) => read(core, pids));
  const startedAt = performance.now();
  return () => {
    const wallNs = (performance.now() - startedAt) * 1e6;
    const foreignNs = groups.map(([core, pids], i) => {
      const after = read(core, pids);
      const own = pids.reduce((sum, _pid, k) => sum + cpuBetween(before[i].own[k], after.own[k]), 0);
      return Math.max(0, after.busy - before[i].busy - own);
    });
    const worst = canPin ? Math.max(...foreignNs) : 0;
    return { foreign: worst / wallNs, clean: worst <= Math.max(FOREIGN_FLOOR_NS, wallNs * FOREIGN_LIMIT) };
  };
}

/** Waits, for a while, until nobody uses the cores: cheaper than a spoilt round. */
async function calm() {
  const startedAt = performance.now();
  for (;;) {
    const before = coreBusyNs(cores.proxy) + coreBusyNs(cores.load);
    await sleep(CALM_WINDOW_MS);
    const busy = coreBusyNs(cores.proxy) + coreBusyNs(cores.load) - before;
    if (busy <= CALM_WINDOW_MS * 1e6 * 0.16 || performance.now() - startedAt > CALM_LIMIT_MS) return;
  }
}

/** Tries until a round is clean; the cleanest one, marked, when none is. */
export async function cleanRound(run, onDirty) {
  let best = null;
  for (let attempt = 1; attempt <= limits.tries; attempt += 1) {
    await calm();
    const result = await run();
    if (best === null || result.foreign < best.foreign) best = result;
    if (result.clean) return result;
    if (attempt < limits.tries) onDirty?.(result);
  }
  return best;
}

/**
 * One window of load on one target → CPU per unit. With `rampMs` the load is already running when the window opens and
 * still runs when it closes (streams); without it the window reaches from silence to silence, so that every request
 * in it is whole.
 */
export async function cpuWindow(target, makeLoad, { windowMs, rampMs = 0, unitsOf, errors }) {
  const load = new Load(makeLoad(target));
  await load.open();
  if (rampMs > 0) {
    load.start();
    await sleep(rampMs);
  }
  const unitsBefore = await unitsOf(load);
  const before = cpuOf(target.pid);
  const done = watchCores([target.pid]);
  const startedAt = performance.now();
  if (rampMs === 0) load.start();
  await sleep(windowMs);
  if (rampMs === 0) await load.stop();
  const { foreign, clean } = done();
  const cpuNs = cpuBetween(before, cpuOf(target.pid));
  const seconds = (performance.now() - startedAt) / 1000;
  const units = (await unitsOf(load)) - unitsBefore;
  if (rampMs > 0) await load.stop();
  load.close();
  errors.add(target.name, load);
  return { value: units > 0 ? cpuNs / units / 1000 : NaN, units, foreign, clean, perSecond: units / seconds };
}

/**
 * Load until two neighbouring seconds agree, within the limits. The limits are CPU time of the target, since the JIT
 * needs 4–6 s of load and not of waiting; twice as long on the clock at most.
 */
export async function warmUp(target, makeLoad, { minimumMs, maximumMs, unitsOf, errors }) {
  const load = new Load(makeLoad(target));
  await load.open();
  load.start();
  const startedAt = performance.now();
  let previous = NaN;
  let loadedMs = 0;
  for (;;) {
    const unitsBefore = await unitsOf(load);
    const before = cpuOf(target.pid);
    await sleep(1000);
    const cpuNs = cpuBetween(before, cpuOf(target.pid));
    const perUnit = cpuNs / ((await unitsOf(load)) - unitsBefore);
    loadedMs += cpuNs / 1e6;
    const settled = Math.abs(perUnit - previous) < previous * 0.04;
    previous = perUnit;
    if (loadedMs >= maximumMs || performance.now() - startedAt >= 2 * maximumMs) break;
    if (settled && loadedMs >= minimumMs) break;
  }
  await load.stop();
  load.close();
  errors.add(target.name, load);
}

/** Errors of a scenario by target, with a few samples of each. */
export class ErrorCount {
  counts = {};
  samples = {};

  add(name, load) {
    this.note(name, load.errors, load.errorSamples);
  }

  note(name, count, samples = []) {
    if (count === 0) return;
    this.counts[name] = (this.counts[name] ?? 0) + count;
    this.samples[name] = [...(this.samples[name] ?? []), ...samples].slice(0, 3);
  }

  get total() {
    return Object.values(this.counts).reduce((sum, count) => sum + count, 0);
  }
}
