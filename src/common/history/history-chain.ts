import { createHash } from 'node:crypto';
import { JsonDocument } from '../json/json-document.js';
import { JsonSyntaxError } from '../json/json-syntax-error.js';
import { messageDigest } from './canon-digest.js';
import { MessageScan } from './message-scan.js';
import { ResumePoints, type Resumption } from './resume-points.js';

/** What is longer is told apart by its first messages: a history must not cost seconds. */
export const CHAIN_LIMIT = 8192;
/** Clients move their cache marks within the last few messages; a point before those still holds on the next turn. */
const UNSTEADY_MESSAGES = 4;
const OPEN = Buffer.from('[');

/** The prefix hashes of one history. */
export interface Chain {
  /** Hashes of the prefixes, ascending, as one-byte strings of 32 characters (half of what hex would take). */
  readonly digests: readonly string[];
  /** The shorter prefixes were left out, because the first of `digests` was computed before. */
  readonly resumed: boolean;
}

/** Where a chain begins: at the first user message (the first of all where there is none), or at the first message. */
export type ChainStart = 'first_user' | 'first';

/**
 * Computes `h(0) = SHA-256(canon(m0))`, `h(i) = SHA-256(h(i-1) ‖ canon(mi))` over the messages of a history. Owns the memory of where it stopped in earlier histories, lives as long as the service.
 */
export class HistoryChain {
  readonly #points = new ResumePoints();

  constructor(private readonly start: ChainStart) {}

  /**
   * The chain of this `messages` array, as far as it is new; undefined where there is no message.
   * @param fresh from the start, whatever is remembered
   */
  follow(messages: Buffer, fresh = false): Chain | undefined {
    const scan = new MessageScan(messages);
    try {
      const first = this.start === 'first' ? 0 : startOfChain(scan);
      if (scan.item(first) === undefined) return undefined;
      const history = messages.subarray(scan.start(first));
      const found = fresh ? undefined : this.#points.find(history);
      const rest = found && tailBehind(history, found.point.lengthBytes);
      if (found !== undefined && rest !== undefined) return this.#resume(history, found, rest);
      return this.#start(history, scan, first);
    } catch (error) {
      if (error instanceof JsonSyntaxError) return undefined;
      throw error;
    }
  }

  /** Hash of the whole history from its first user message on, without remembering anything. */
  static idOf(messages: Buffer): string | undefined {
    const digest = new HistoryChain('first_user').follow(messages, true)?.digests.at(-1);
    return digest === undefined ? undefined : hexOf(digest);
  }

  #start(history: Buffer, scan: MessageScan, first: number): Chain {
    const base = scan.start(first);
    const { digests, ends } = walk(scan, first, '', CHAIN_LIMIT, -base);
    this.#remember(history, { hash: createHash('sha256'), from: 0, count: 0 }, digests, ends);
    return { digests, resumed: false };
  }

  #resume(history: Buffer, { point, hash }: Resumption, rest: Tail): Chain {
    if (rest.at < 0) return { digests: [point.digest], resumed: true };
    const scan = new MessageScan([OPEN, history.subarray(rest.at)]);
    const { digests, ends } = walk(scan, 0, point.digest, CHAIN_LIMIT - point.count, rest.at - OPEN.length);
    this.#remember(history, { hash, from: point.lengthBytes, count: point.count }, digests, ends);
    return { digests: [point.digest, ...digests], resumed: true };
  }

  #remember(history: Buffer, done: Hashed, digests: readonly string[], ends: readonly number[]): void {
    const last = digests.length - 1;
    let from = done.from;
    for (const i of [last - UNSTEADY_MESSAGES, last]) {
      const [end, digest] = [ends[i], digests[i]];
      if (end === undefined || digest === undefined) continue;
      done.hash.update(history.subarray(from, end));
      from = end;
      this.#points.add(history, end, done.hash.copy().digest('binary'), done.count + i + 1, digest);
    }
  }
}

export function hexOf(digest: string): string {
  return Buffer.from(digest, 'latin1').toString('hex');
}

interface Hashed {
  readonly hash: ReturnType<typeof createHash>;
  /** Bytes and messages that `hash` covers. */
  readonly from: number;
  readonly count: number;
}

/** Index of the first user message; 0 where there is none. */
function startOfChain(scan: MessageScan): number {
  for (let i = 0; i < CHAIN_LIMIT; i++) {
    const message = scan.item(i);
    if (message === undefined) break;
    if (JsonDocument.tryParse(message)?.string('role') === 'user') return i;
  }
  return 0;
}

interface Tail {
  /** Where the next message may stand; -1 when none follows. */
  readonly at: number;
}

/** What follows a known beginning: a comma, or the end of the array. */
function tailBehind(history: Buffer, end: number): Tail | undefined {
  let at = end;
  while (at < history.length && history[at]! <= 32) at++;
  if (history[at] === 44) return { at: at + 1 };
  return history[at] === 93 ? { at: -1 } : undefined;
}

/** @param shift from the scan's offsets to those of the history */
function walk(
  scan: MessageScan,
  first: number,
  before: string,
  limit: number,
  shift: number,
): { digests: string[]; ends: number[] } {
  const digests: string[] = [];
  const ends: number[] = [];
  let digest = before;
  for (let i = first; i < first + limit; i++) {
    const message = scan.item(i);
    if (message === undefined) break;
    digest = messageDigest(digest, message);
    digests.push(digest);
    ends.push(scan.end(i) + shift);
  }
  return { digests, ends };
}
