import type { CommitOptions } from './answer/answer-reader.js';

const SSE_OVERRIDDEN: ReadonlySet<string> = new Set(['content-length', 'cache-control', 'x-accel-buffering']);
const LENGTH_OVERRIDDEN: ReadonlySet<string> = new Set(['content-length']);

/** Headers of the upstream's answer in whose place ours stand. */
export function overridden(options: CommitOptions): ReadonlySet<string> {
  const base = options.kind === 'sse' ? SSE_OVERRIDDEN : LENGTH_OVERRIDDEN;
  return options.contentType === undefined ? base : new Set([...base, 'content-type']);
}
