import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import type { ConfigProblem } from './config-problem.js';
import { oddKind } from './file-kind.js';

/** More than any sane file; parsing far more would look like a hang. */
const MAX_BYTES = 64 * 1024 * 1024;

export type FileText = { ok: true; path: string; text: string } | { ok: false; problem: ConfigProblem };

/** Reads a file as UTF-8, with or without a byte order mark; `what` is what messages call it. */
export function readFileText(path: string, what = 'config'): FileText {
  const absolute = resolve(path);
  const failed = (message: string): FileText => ({ ok: false, problem: { path: '', line: null, message } });
  try {
    const odd = oddKind(absolute);
    // The file itself may come from another program: `--check <(…)`.
    if (odd !== null && !(what === 'config' && odd === 'a pipe'))
      return failed(`${what} is no regular file but ${odd}: ${absolute}`);
    const bytes = readFileSync(absolute);
    if (bytes.length > MAX_BYTES) return failed(`${what} is larger than 64 MiB: ${absolute}`);
    return { ok: true, path: absolute, text: new TextDecoder('utf-8', { fatal: true }).decode(bytes) };
  } catch (error) {
    return failed(`${what} ${reasonOf(error)}: ${absolute}`);
  }
}

function reasonOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  if (code === 'ENOENT' || code === 'ENOTDIR') return 'not found';
  if (code === 'EISDIR') return 'is a directory, not a file';
  if (code === 'EACCES' || code === 'EPERM') return 'cannot be read (permission denied)';
  if (code === 'ERR_ENCODING_INVALID_ENCODED_DATA') return 'is not valid UTF-8 text; save it as UTF-8';
  return `cannot be read (${code === '' ? 'unknown error' : code})`;
}
