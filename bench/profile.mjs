// Where the CPU goes: the proxy under one scenario's load with the CPU profiler on, then the functions by self time.
// node bench/profile.mjs [--scenario unary-400b] [--variant us] [--warmup 5] [--seconds 10] [--top 40] [--keep FILE]
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Load } from './load.mjs';
import { cpuBetween, cpuOf, pinSelf } from './lib/proc.mjs';
import {
  environmentArgs,
  missing,
  startProvider,
  startTarget,
  stopAll,
  temporaryDirectory,
} from './lib/targets.mjs';
import { cpuScenarios, loadOf, unitsOf } from './scenarios/cpu.mjs';
import { readOptions } from './lib/options.mjs';

const options = readOptions(import.meta.url, {
  scenario: { type: 'string', default: 'unary-400b' },
  variant: { type: 'string', default: 'us' },
  warmup: { type: 'string', default: '5' },
  seconds: { type: 'string', default: '10' },
  top: { type: 'string', default: '40' },
  keep: { type: 'string' },
});
const print = (text) => process.stdout.write(`${text}\n`);
const fail = (text) => {
  process.stderr.write(`${text}\n`);
  process.exit(1);
};

const scenario = cpuScenarios.find(({ name }) => name === options.scenario);
if (scenario === undefined) fail(`--scenario is one of ${cpuScenarios.map(({ name }) => name).join(', ')}`);

pinSelf();
process.once('SIGINT', () => {
  stopAll();
  process.exit(130);
});
const provider = await startProvider();
const directory = temporaryDirectory();
const variants = scenario.variants({ provider, targets: ['us', 'naive', 'splice'] });
const variant = variants.find(({ name }) => name === options.variant);
if (variant === undefined) fail(`--variant is one of ${variants.map(({ name }) => name).join(', ')}`);
const reason = missing(variant.kind);
if (reason !== null) fail(`${variant.kind}: ${reason}`);

const nodeArgs = [
  ...environmentArgs(),
  '--cpu-prof',
  `--cpu-prof-dir=${directory}`,
  '--cpu-prof-interval=500',
];
const target = await startTarget({ ...variant, directory, nodeArgs });
const load = new Load(loadOf(scenario, variant)(target));
const units = unitsOf(scenario, provider);
await load.open();
load.start();
await sleep(Number(options.warmup) * 1000);
const unitsBefore = await units(load);
const before = cpuOf(target.pid);
const windowStart = performance.now();
await sleep(Number(options.seconds) * 1000);
const cpuNs = cpuBetween(before, cpuOf(target.pid));
const count = (await units(load)) - unitsBefore;
const windowEnd = performance.now();
await load.stop();
load.close();
const stoppedAt = performance.now();
await target.stop({ graceMs: 20_000 });
provider.stop();

const file = readdirSync(directory).find((name) => name.endsWith('.cpuprofile'));
if (file === undefined) fail('no profile was written: did the process end by itself on SIGTERM?');
const profile = JSON.parse(readFileSync(join(directory, file), 'utf8'));
if (options.keep !== undefined) writeFileSync(options.keep, JSON.stringify(profile));
rmSync(directory, { recursive: true, force: true });

// Only samples inside the window, counted back from the end of the load (the end of the profile is a little later).
const names = new Map(profile.nodes.map(({ id, callFrame }) => [id, nameOf(callFrame)]));
const toMicro = (ms) => profile.endTime - (stoppedAt - ms) * 1000;
const [from, to] = [toMicro(windowStart), toMicro(windowEnd)];
const self = new Map();
let at = profile.startTime;
let total = 0;
profile.samples.forEach((id, i) => {
  const delta = profile.timeDeltas[i];
  at += delta;
  if (at < from || at > to || delta < 0) return;
  const name = names.get(id);
  self.set(name, (self.get(name) ?? 0) + delta);
  if (name !== '(idle)') total += delta;
});

print(
  `${scenario.name} ${variant.name}: ${(cpuNs / 1000 / count).toFixed(1)} ${scenario.unit} under the profiler`,
);
print(
  `${count} units in ${options.seconds} s, ${load.errors} errors${load.errors > 0 ? `: ${load.errorSamples}` : ''}`,
);
print('  self %   µs/unit  function');
self.delete('(idle)');
const ranked = [...self].sort((a, b) => b[1] - a[1]).slice(0, Number(options.top));
for (const [name, micros] of ranked) {
  print(
    `${((100 * micros) / total).toFixed(2).padStart(8)} ${(micros / count).toFixed(2).padStart(9)}  ${name}`,
  );
}
process.exit(load.errors > 0 ? 1 : 0);

function nameOf({ functionName, url, lineNumber }) {
  const place = url
    .replace(/^file:\/\//, '')
    .replace(/^.*\/node_modules\//, '')
    .replace(/^.*\/dist\//, 'dist/');
  return `${functionName || '(anonymous)'}${place === '' ? '' : `  ${place}:${lineNumber + 1}`}`;
}
