import { randomUUID } from 'node:crypto';

const LONGEST = 128;

/** The client's id where it matches `[A-Za-z0-9._:-]{1,128}`, else a new one. */
export function requestIdOf(header: string | string[] | undefined): string {
  return typeof header === 'string' && isSane(header) ? header : randomUUID();
}

function isSane(id: string): boolean {
  return id.length > 0 && id.length <= LONGEST && /^[A-Za-z0-9._:-]+$/.test(id);
}
