import type { PluginProblem } from '../common/errors/plugin-setup-error.js';
import { timerDelay } from '../common/time/clock.js';

/** How long each step of a plugin's start may take: its import, `configure`, and a hook of the framework. */
export const PLUGIN_START_LIMIT_MS = 30_000;

/** A step of a plugin's start that did not come to an end. */
export class PluginLateError extends Error {
  constructor(limitMs: number) {
    super(`did not come to an end within ${limitMs / 1000} s`);
    this.name = 'PluginLateError';
  }
}

/**
 * @throws PluginLateError where the work is not settled by then. Trap: without the timer a promise that nobody settles would
 * end the process, with an exit code and a warning that name nobody.
 */
export async function inTime<T>(work: T | PromiseLike<T>, limitMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new PluginLateError(limitMs)), timerDelay(limitMs));
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** What a step of the start threw, in a few words. Trap: anything can be thrown. */
export function describe(error: unknown): string {
  if (error instanceof PluginLateError) return `it ${error.message}`;
  if (!(error instanceof Error)) return 'it threw no error object';
  return `${error.name}: ${error.message.split('\n')[0]}`;
}

/** What is said of a plugin that could not be started in one of its hooks. */
export function failedIn(
  path: PluginProblem['path'],
  who: string,
  hook: string,
  error: unknown,
): PluginProblem {
  const message =
    error instanceof PluginLateError
      ? `${who}: ${hook} ${error.message}`
      : `${who} failed in ${hook} (${describe(error)})`;
  return { path, message };
}
