import { statSync, type Stats } from 'node:fs';

/**
 * What a path names instead of a file with an end, or null; a link counts as what it leads to. A directory is left to the
 * reading, which says so.
 * Trap: opening a pipe waits for its writer, and a device may never end: to be asked before the file is opened.
 * @throws the error of `stat`
 */
export function oddKind(path: string): string | null {
  const stats = statSync(path);
  return stats.isFile() || stats.isDirectory() ? null : kindOf(stats);
}

function kindOf(stats: Stats): string {
  if (stats.isFIFO()) return 'a pipe';
  return stats.isSocket() ? 'a socket' : 'a device';
}
