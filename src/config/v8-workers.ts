import { readdirSync, readFileSync } from 'node:fs';
import { availableParallelism, setPriority } from 'node:os';

const TASKS = '/proc/self/task';
/** As Node names V8's worker threads. Older ones give them no name of their own, and nothing is done. */
const WORKER = 'V8Worker';
/**
 * A tenth of the weight of the thread of the requests. Trap: that one waits for them at the end of a collection, so on a core
 * that other processes use as well they must still come to run.
 */
const NICENESS = 10;

/**
 * On one core V8's four worker threads do not help: while they mark the heap they take four fifths of it, and everybody's
 * streams stutter (docs/performance.md, `mixed`). There they run when nobody asks for anything. `cores` = how many this
 * process may use, which containers limit. Returns how many threads it was told; elsewhere than on Linux none.
 */
export function letV8WorkersYield(cores = availableParallelism()): number {
  if (cores > 1) return 0;
  try {
    const workers = readdirSync(TASKS).filter((thread) => nameOf(thread) === WORKER);
    for (const thread of workers) setPriority(Number(thread), NICENESS);
    return workers.length;
  } catch {
    // No /proc, or a sandbox that forbids it: the priorities stay as they are.
    return 0;
  }
}

function nameOf(thread: string): string {
  return readFileSync(`${TASKS}/${thread}/comm`, 'utf8').trim();
}
