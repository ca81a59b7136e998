import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

const NAMES = [
  'claim',
  'release',
  'forget',
  'renew',
  'enrol',
  'leave',
  'fail',
  'succeed',
  'rests',
  'hold',
  'held',
  'reserve',
  'settle',
  'resume',
  'sums',
  'recall',
  'probe',
] as const;

/** These follow `counting.lua` too. */
const COUNTING: ReadonlySet<string> = new Set(['reserve', 'settle', 'resume', 'sums']);

export type ScriptName = (typeof NAMES)[number];

export interface Script {
  readonly text: string;
  readonly sha1: string;
}

/** The Lua scripts, from the files beside this one. Read once, when the first replica of a process needs them. */
export function loadScripts(): ReadonlyMap<ScriptName, Script> {
  const read = (name: string) => readFileSync(new URL(`./lua/${name}.lua`, import.meta.url), 'utf8');
  const common = read('common');
  const counting = `${common}\n${read('counting')}`;
  return new Map(
    NAMES.map((name) => {
      const text = `${COUNTING.has(name) ? counting : common}\n${read(name)}`;
      return [name, { text, sha1: createHash('sha1').update(text).digest('hex') }];
    }),
  );
}
