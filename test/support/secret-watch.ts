/** Stands in every key, token and password the tests use. */
export const SECRET_MARKER = 'SeCrEtMaRk';

/** A key for a test: long enough to be masked with its ends shown, and unmistakable. */
export function secretKey(name: string): string {
  return `sk-${SECRET_MARKER}-${name}-${SECRET_MARKER}-0123`;
}

const MARKER_BYTES = Buffer.from(SECRET_MARKER);
const CONTEXT_BYTES = 120;
const leaks: string[] = [];

/**
 * Looks at everything the service puts out in any test: answers, logs, metrics. What holds a secret is kept and fails
 * the file's last check. `carry` is the end of the piece before, so that a secret cut in two is seen too.
 */
export class OutputWatch {
  #carry: Buffer = Buffer.alloc(0);

  constructor(private readonly where: string) {}

  see(piece: Buffer | string): void {
    const bytes = typeof piece === 'string' ? Buffer.from(piece) : piece;
    const joined = this.#carry.length === 0 ? bytes : Buffer.concat([this.#carry, bytes]);
    const at = joined.indexOf(MARKER_BYTES);
    if (at >= 0) {
      const from = Math.max(0, at - CONTEXT_BYTES);
      leaks.push(`${this.where}: ${joined.toString('utf8', from, at + CONTEXT_BYTES)}`);
    }
    this.#carry = Buffer.from(joined.subarray(Math.max(0, joined.length - MARKER_BYTES.length + 1)));
  }
}

/** What leaked since the last call. */
export function takeLeaks(): string[] {
  return leaks.splice(0);
}
