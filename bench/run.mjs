// The benchmark: the built service against reference proxies, in one run (README.md beside this file).
// npm run bench [-- --quick] [--scenario start,sse] [--targets us,naive,splice,portkey,nginx] [--rounds 5] [--tries 6]
//               [--markdown docs/performance.md] [--json FILE] [--quiet]
import { rmSync, writeFileSync } from 'node:fs';
import { canPin, cores, exactClock, openFileLimit, pinSelf } from './lib/proc.mjs';
import { limits } from './lib/measure.mjs';
import { line, machine, markdown } from './lib/report.mjs';
import { missing, startProvider, stopAll, temporaryDirectory } from './lib/targets.mjs';
import { scenarios } from './scenarios/index.mjs';
import { readOptions } from './lib/options.mjs';

const KINDS = ['us', 'naive', 'splice', 'portkey', 'nginx'];
const print = (text) => process.stdout.write(`${text}\n`);
const warn = (text) => process.stderr.write(`${text}\n`);

const options = readOptions(import.meta.url, {
  scenario: { type: 'string' },
  rounds: { type: 'string' },
  quick: { type: 'boolean', default: false },
  targets: { type: 'string' },
  json: { type: 'string' },
  markdown: { type: 'string' },
  tries: { type: 'string' },
  quiet: { type: 'boolean', default: false },
});

function chosen(text, all, what) {
  if (text === undefined) return all;
  const names = text.split(',').map((name) => name.trim());
  const unknown = names.filter((name) => !all.includes(name));
  if (unknown.length > 0) {
    warn(`unknown ${what}: ${unknown.join(', ')} (there are: ${all.join(', ')})`);
    process.exit(2);
  }
  return all.filter((name) => names.includes(name));
}

const names = chosen(
  options.scenario,
  scenarios.map((scenario) => scenario.name),
  'scenario',
);
const rounds = Number(options.rounds ?? (options.quick ? 3 : 5));
if (!Number.isInteger(rounds) || rounds < 1) {
  warn('--rounds wants a whole number above 0');
  process.exit(2);
}
limits.tries = Math.max(1, Number(options.tries ?? (options.quick ? 2 : 6)) || 1);
const targets = [];
for (const kind of chosen(options.targets, KINDS, 'target')) {
  const reason = missing(kind);
  if (reason === null) targets.push(kind);
  else if (kind === 'us') {
    warn(`us: ${reason} (or measure the references alone: --targets naive,splice)`);
    process.exit(1);
  } else print(`skipped ${kind}: ${reason}`);
}

pinSelf();
if (!canPin) warn('no second core or no taskset: nothing is pinned, the figures will be rough');
if (!exactClock) warn('no /proc/PID/task/*/schedstat: only clock ticks of 10 ms, choose many rounds');
print(
  `targets ${targets.join(', ')} · ${rounds} rounds · load on core ${cores.load}, proxy on core ${cores.proxy}` +
    ` · open files ${openFileLimit()}`,
);

const directory = temporaryDirectory();
for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, () => {
    stopAll();
    rmSync(directory, { recursive: true, force: true });
    process.exit(130);
  });
}
const provider = await startProvider();
const results = [];
let failures = 0;
for (const scenario of scenarios.filter(({ name }) => names.includes(name))) {
  const startedAt = performance.now();
  const progress = (text) => {
    if (!options.quiet) warn(`  ${scenario.name}: ${text}`);
  };
  const context = { provider, targets, rounds, quick: options.quick, directory, progress, warn };
  if (scenario.variants?.(context).length === 0) {
    print(`${scenario.name}: skipped, it compares us with us and us is not among the targets`);
    continue;
  }
  try {
    const { variants, errors, notes } = await scenario.run(context);
    failures += errors.total;
    results.push({
      name: scenario.name,
      title: scenario.title,
      unit: scenario.unit,
      variants,
      notes,
      errorCounts: errors.counts,
      errorSamples: errors.samples,
      seconds: Math.round((performance.now() - startedAt) / 1000),
    });
    print(line({ ...scenario, variants, errors }));
    for (const [name, samples] of Object.entries(errors.samples)) {
      for (const sample of samples) print(`  ERROR ${name}: ${sample}`);
    }
  } catch (error) {
    failures += 1;
    print(`${scenario.name}: FAILED ${error.message}`);
  }
}
provider.stop();
rmSync(directory, { recursive: true, force: true });

const report = { machine: machine(rounds), targets, quick: options.quick, results, failures };
const table = markdown(report);
print(`\n${table}`);
if (options.markdown !== undefined) writeFileSync(options.markdown, table);
if (options.json !== undefined) writeFileSync(options.json, `${JSON.stringify(report, null, 2)}\n`);
if (failures > 0) print(`${failures} errors`);
process.exit(failures > 0 ? 1 : 0);
