import { readdirSync, readFileSync } from 'node:fs';
import { getPriority } from 'node:os';
import { describe, expect, it } from 'vitest';
import { letV8WorkersYield } from './v8-workers.js';

const TASKS = '/proc/self/task';

/** The niceness of each thread by its name, or nothing where there is no such list. */
function priorities(): Map<string, number[]> {
  const found = new Map<string, number[]>();
  if (process.platform !== 'linux') return found;
  for (const thread of readdirSync(TASKS)) {
    const name = readFileSync(`${TASKS}/${thread}/comm`, 'utf8').trim();
    found.set(name, [...(found.get(name) ?? []), getPriority(Number(thread))]);
  }
  return found;
}

describe('worker threads of V8', () => {
  it('keep their priority where there is a core for them', () => {
    const before = priorities();
    expect(letV8WorkersYield(2)).toBe(0);
    expect(priorities()).toEqual(before);
  });

  it('yield to the requests on a single core, and no other thread does', () => {
    const before = priorities();
    const workers = before.get('V8Worker')?.length ?? 0;
    expect(letV8WorkersYield(1)).toBe(workers);
    const after = priorities();
    expect(new Set(after.get('V8Worker'))).toEqual(new Set(workers === 0 ? [] : [10]));
    before.delete('V8Worker');
    after.delete('V8Worker');
    expect(after).toEqual(before);
  });
});
