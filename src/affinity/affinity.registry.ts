import { HistoryChain } from '../common/history/history-chain.js';
import type { Clock } from '../common/time/clock.js';

/** Who served a conversation: where its beginning may still be cached. */
export interface Place {
  readonly upstream: string;
  /** Id of the key; null where the provider has one only. */
  readonly key: string | null;
}

/** What is known of one history, and what to remember it by. */
export interface Recollection {
  /** Who served the longest known prefix; null = nobody did. */
  readonly place: Place | null;
  readonly scope: string;
  /** Of the longest known prefix and all longer ones; of all prefixes where none is known. */
  readonly digests: readonly string[];
}

export interface AffinityLimits {
  readonly prefixes?: number;
  readonly prefixesPerHistory?: number;
  readonly idleMs?: number;
}

/** A prefix in its scope, and who served it. */
export type Known = readonly [prefix: string, place: Place];

interface Remembered {
  readonly place: Place;
  usedAtMs: number;
}

const IDLE_MS = 6 * 60 * 60 * 1000;
const PREFIX_LIMIT = 100_000;
const PREFIXES_PER_HISTORY = 1024;
/** Of a long history, so many of its first prefixes are remembered beside the longest ones: others share them. */
const SHARED_PREFIXES = 8;
const NOBODY: Recollection = { place: null, scope: '', digests: [] };

/**
 * Knows which upstream served which beginning of a conversation: hash of a prefix → place, the longest known
 * prefix wins. Every prefix stands for itself, so that two conversations with one beginning may live at two places. Owns a
 * bounded number of hashes, the least recently used go first, each after 6 hours; never a word of a message. Lives as long
 * as the service; a restart begins anew.
 */
export class AffinityRegistry {
  readonly #chain = new HistoryChain('first');
  /** Least recently used first. */
  readonly #prefixes = new Map<string, Remembered>();
  readonly #limits: Required<AffinityLimits>;

  constructor(
    private readonly clock: Clock,
    limits: AffinityLimits = {},
  ) {
    this.#limits = {
      prefixes: PREFIX_LIMIT,
      prefixesPerHistory: PREFIXES_PER_HISTORY,
      idleMs: IDLE_MS,
      ...limits,
    };
  }

  get size(): number {
    return this.#prefixes.size;
  }

  /**
   * Looks a history up and remembers nothing of it.
   * @param scope what it belongs to: histories of different scopes never meet
   * @param messages the bytes of a `messages` array
   */
  recall(scope: string, messages: Buffer): Recollection {
    this.#dropExpired();
    let chain = this.#chain.follow(messages);
    // What was hashed before may be unknown here: forgotten, of another scope, or never served.
    if (chain?.resumed && !this.#prefixes.has(scope + chain.digests[0]!))
      chain = this.#chain.follow(messages, true);
    if (chain === undefined) return NOBODY;
    const { digests } = chain;
    for (let i = digests.length - 1; i >= 0; i--) {
      const known = this.#prefixes.get(scope + digests[i]!);
      if (known === undefined) continue;
      this.#put(scope + digests[i]!, known.place);
      return { place: known.place, scope, digests: digests.slice(i) };
    }
    return { place: null, scope, digests };
  }

  /** The history was served there. Prefixes shorter than the one that was known keep their own places. */
  remember({ scope, digests }: Recollection, place: Place): void {
    const { prefixes, prefixesPerHistory } = this.#limits;
    const skipped = Math.max(0, digests.length - prefixesPerHistory);
    for (const [i, digest] of digests.entries()) {
      if (i < SHARED_PREFIXES || i >= skipped + SHARED_PREFIXES) this.#put(scope + digest, place);
    }
    for (const [oldest] of this.#prefixes) {
      if (this.#prefixes.size <= prefixes) break;
      this.#prefixes.delete(oldest);
    }
  }

  /** The last used ones, for others who know nothing yet: the oldest first. */
  recent(count: number): Known[] {
    return [...this.#prefixes].slice(-count).map(([key, { place }]) => [key, place]);
  }

  /** What others know; what is known here stands. */
  learn(known: readonly Known[]): void {
    for (const [key, place] of known) if (!this.#prefixes.has(key)) this.#put(key, place);
  }

  #put(key: string, place: Place): void {
    this.#prefixes.delete(key);
    this.#prefixes.set(key, { place, usedAtMs: this.clock.now() });
  }

  #dropExpired(): void {
    const before = this.clock.now() - this.#limits.idleMs;
    for (const [key, { usedAtMs }] of this.#prefixes) {
      if (usedAtMs > before) break;
      this.#prefixes.delete(key);
    }
  }
}
