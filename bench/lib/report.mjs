// Turns results into lines, a Markdown table and JSON.
import { execFileSync } from 'node:child_process';
import os from 'node:os';
import { evaluate, goals, ratioOf } from '../goals.mjs';
import { canPin, exactClock } from './proc.mjs';
import { node } from './targets.mjs';

export function number(value) {
  if (value === undefined || !Number.isFinite(value)) return '–';
  if (value >= 1000) return Math.round(value).toLocaleString('en-US');
  return value >= 100 ? value.toFixed(0) : value.toFixed(1);
}

const ratio = (value) =>
  value === null || !Number.isFinite(value) ? '–' : value.toFixed(value < 0.1 ? 3 : 2);

/** One line when a scenario is done. */
export function line({ name, unit, variants, errors }) {
  const parts = Object.entries(variants).map(([variant, { median, minimum, maximum, unclean }]) => {
    const note = unclean > 0 ? ` ${unclean} unclean` : '';
    return `${variant} ${number(median)} [${number(minimum)}–${number(maximum)}${note}]`;
  });
  const { first = [], goal = [] } = goals[name] ?? {};
  const checks = [...first, ...goal]
    .map((check) => describe(check, variants))
    .filter((text) => text !== null);
  const failed = Object.entries(errors.counts).map(([variant, count]) => `${variant} ${count} errors`);
  return `${name} (${unit}): ${[...parts, ...checks, ...failed].join(' · ')}`;
}

function describe(check, variants) {
  const { ratio: value, reached } = evaluate(check, variants);
  if (reached === null) return null;
  return `${reached ? 'yes' : 'NO'}: ${ratio(value)} ≤ ${ratio(check.atMost)} ${check.to}${check.metric ? ' peak RSS' : ''}`;
}

function cell(checks, variants) {
  if (checks.length === 0) return '–';
  return checks
    .map((check) => {
      const { ratio: value, reached } = evaluate(check, variants);
      const bound = `≤ ${ratio(check.atMost)} × ${check.to}${check.metric ? ' (peak RSS)' : ''}`;
      return reached === null
        ? `${bound}: –`
        : `${bound}: ${reached ? '**yes**' : '**no**'} (${ratio(value)})`;
    })
    .join('<br>');
}

/** A median; `~` when most of its rounds stayed disturbed. */
function figure(variant) {
  if (variant === undefined) return '–';
  return `${number(variant.median)}${variant.unclean * 2 > variant.rounds.length ? '~' : ''}`;
}

/** Ours to what the scenario is judged by: F in most of them. */
function ratioCell(base, variants) {
  return `${ratio(ratioOf(variants.us, variants[base]))} × ${LETTERS[base] ?? base}`;
}

const COLUMNS = ['naive', 'splice', 'portkey', 'nginx'];
const LETTERS = { naive: 'F', splice: 'S', portkey: 'P', nginx: 'nginx' };

export function markdown({ machine, results, quick }) {
  const rows = results.map((result) => {
    const { name, title, unit, variants, errorCounts } = result;
    const own = Object.keys(variants).find(
      (key) => key !== 'us' && !COLUMNS.includes(key) && key !== 'direct',
    );
    const { first = [], goal = [] } = goals[name] ?? {};
    const base = [...first, ...goal][0]?.to;
    const total = Object.values(errorCounts).reduce((sum, count) => sum + count, 0);
    return [
      `\`${name}\` ${title}`,
      unit,
      figure(variants.us),
      ...COLUMNS.map((column) => figure(variants[column])),
      own === undefined ? '–' : `${own} ${figure(variants[own])}`,
      base === undefined ? '–' : ratioCell(base, variants),
      cell(first, variants),
      cell(goal, variants),
      String(total),
    ];
  });
  const head = ['scenario', 'unit', 'ours', ...COLUMNS.map((column) => LETTERS[column]), 'own base'];
  const tail = ['ratio', 'first', 'goal', 'errors'];
  const table = [[...head, ...tail], [...head, ...tail].map(() => '---'), ...rows];
  return [
    `Node ${machine.node} · ${machine.cpu} (${machine.cores} cores) · ${machine.kernel} · ${machine.date}` +
      `${machine.commit === null ? '' : ` · commit ${machine.commit}`} · medians of ${machine.rounds} rounds` +
      `${machine.pinned ? '' : ' · NOT PINNED'}${machine.exactClock ? '' : ' · 10 ms ticks only'}`,
    '',
    'F = naive Fastify, S = splicing Fastify, P = Portkey; each value was measured in the same run. ~ = most rounds were disturbed.',
    ...(quick ? ['', '**Quick run: the JIT has not settled, no conclusions from this.**'] : []),
    '',
    ...table.map((row) => `| ${row.join(' | ')} |`),
    '',
  ].join('\n');
}

export function machine(rounds) {
  let commit = null;
  try {
    commit = execFileSync('git', ['rev-parse', '--short', 'HEAD'], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim();
  } catch {
    // Not a checkout: the report goes without.
  }
  return {
    node: execFileSync(node, ['--version'], { encoding: 'utf8' }).trim(),
    cpu: os.cpus()[0]?.model.trim() ?? 'unknown',
    cores: os.cpus().length,
    kernel: `${os.type()} ${os.release()}`,
    date: new Date().toISOString(),
    commit,
    rounds,
    pinned: canPin,
    exactClock,
  };
}
