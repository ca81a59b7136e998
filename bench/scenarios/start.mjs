// From the start of the process to its first answer, wall time; also with 10,000 consumers of five keys each.
import { ErrorCount, cleanRound } from '../lib/measure.mjs';
import { coreBusyNs, cores, cpuOf } from '../lib/proc.mjs';
import { startTarget } from '../lib/targets.mjs';
import { consumers } from '../lib/us-config.mjs';
import { summarise } from './cpu.mjs';

export const start = {
  name: 'start',
  title: 'process start → first answer',
  unit: 'ms',
  run,
};

async function run({ provider, targets, rounds, directory, progress }) {
  const errors = new ErrorCount();
  const upstream = `${provider.origin}/unary/v1`;
  const many = { kind: 'us', config: consumers({ upstream, count: 10_000 }).config };
  const kinds = [
    ...targets
      .filter((kind) => ['us', 'naive', 'splice'].includes(kind))
      .flatMap((kind) => (kind === 'us' ? ['us', 'us-consumers'] : [kind])),
    'nest-empty',
  ];
  const samples = Object.fromEntries(kinds.map((kind) => [kind, []]));
  const once = async (kind) => {
    const busy = coreBusyNs(cores.proxy);
    const target = await startTarget({
      name: kind,
      ...(kind === 'us-consumers' ? many : {}),
      upstream,
      directory,
    });
    const foreignNs = coreBusyNs(cores.proxy) - busy - cpuOf(target.pid).exactNs;
    await target.stop();
    const foreign = Math.max(0, foreignNs) / (target.startMs * 1e6);
    return { value: target.startMs, foreign, clean: foreignNs < Math.max(30e6, target.startMs * 1e6 * 0.06) };
  };
  // Not counted: fills the page cache and the compile cache.
  for (const kind of kinds) {
    progress(`first start ${kind}`);
    await once(kind);
  }
  for (let round = 1; round <= rounds; round += 1) {
    for (const kind of kinds) {
      const result = await cleanRound(() => once(kind));
      samples[kind].push(result);
      progress(`round ${round}/${rounds} ${kind} ${result.value.toFixed(0)} ms`);
    }
  }
  return { variants: Object.fromEntries(kinds.map((kind) => [kind, summarise(samples[kind])])), errors };
}
