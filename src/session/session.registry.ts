import { hash } from 'node:crypto';
import type { Clock } from '../common/time/clock.js';
import { hexOf, HistoryChain, type Chain } from '../common/history/history-chain.js';

export const SESSION_LIMIT = 1000;
export const IDLE_MS = 6 * 60 * 60 * 1000;
export const PREFIXES_PER_SESSION = 8192;
/** All sessions together: what a thousand hostile histories of full length may hold. */
const PREFIX_LIMIT = 250_000;

interface Session {
  readonly id: string;
  /** In the order they were learnt. */
  readonly prefixes: Set<string>;
  usedAtMs: number;
}

export interface SessionLimits {
  readonly sessions?: number;
  readonly idleMs?: number;
  readonly prefixesPerSession?: number;
  readonly prefixes?: number;
}

/**
 * Knows which history belongs to which session: prefix hash → session id, the longest known prefix wins.
 * Owns at most 1000 sessions, the least recently used goes first, each for 6 hours after its last use. Holds hashes
 * only, never a word of a message. Lives as long as the service; a restart begins anew.
 */
export class SessionRegistry {
  readonly #chain = new HistoryChain('first_user');
  /** Least recently used first. */
  readonly #sessions = new Map<string, Session>();
  readonly #prefixes = new Map<string, Session>();
  readonly #limits: Required<SessionLimits>;

  constructor(
    private readonly clock: Clock,
    limits: SessionLimits = {},
  ) {
    this.#limits = {
      sessions: SESSION_LIMIT,
      idleMs: IDLE_MS,
      prefixesPerSession: PREFIXES_PER_SESSION,
      prefixes: PREFIX_LIMIT,
      ...limits,
    };
  }

  get size(): number {
    return this.#sessions.size;
  }

  /** Prefixes remembered, of all sessions. */
  get prefixes(): number {
    return this.#prefixes.size;
  }

  /**
   * The id for the bytes of a `messages` array; undefined where there is no message. Histories with different `owner`s
   * share nothing, however alike they are.
   */
  resolve(messages: Buffer, owner = ''): string | undefined {
    this.#dropExpired();
    const seed = owner === '' ? '' : seedOf(owner);
    let chain = this.#chain.follow(messages);
    // What was hashed before may be forgotten here by now: then the shorter prefixes are asked too.
    if (chain?.resumed && !this.#prefixes.has(seed + chain.digests[0]!))
      chain = this.#chain.follow(messages, true);
    if (chain === undefined) return undefined;
    const digests = seed === '' ? chain.digests : chain.digests.map((digest) => seed + digest);
    const session = this.#known(digests) ?? this.#create(seed, chain);
    this.#use(session);
    this.#learn(session, digests);
    return session.id;
  }

  #known(digests: readonly string[]): Session | undefined {
    for (let i = digests.length - 1; i >= 0; i--) {
      const session = this.#prefixes.get(digests[i]!);
      if (session !== undefined) return session;
    }
    return undefined;
  }

  #create(seed: string, { digests }: Chain): Session {
    const history = digests.at(-1)!;
    const id = sessionIdOf(seed, history);
    return this.#sessions.get(id) ?? { id, prefixes: new Set(), usedAtMs: 0 };
  }

  #use(session: Session): void {
    session.usedAtMs = this.clock.now();
    this.#sessions.delete(session.id);
    this.#sessions.set(session.id, session);
    this.#trim(() => this.#sessions.size > this.#limits.sessions);
  }

  #learn(session: Session, digests: readonly string[]): void {
    const { prefixesPerSession } = this.#limits;
    // The longest ones are what the next turn asks for.
    for (const digest of digests.slice(-prefixesPerSession)) {
      const owner = this.#prefixes.get(digest);
      if (owner === session) continue;
      owner?.prefixes.delete(digest);
      session.prefixes.add(digest);
      this.#prefixes.set(digest, session);
    }
    for (const oldest of session.prefixes) {
      if (session.prefixes.size <= prefixesPerSession) break;
      session.prefixes.delete(oldest);
      this.#prefixes.delete(oldest);
    }
    this.#trim(() => this.#prefixes.size > this.#limits.prefixes);
  }

  #dropExpired(): void {
    const before = this.clock.now() - this.#limits.idleMs;
    for (const session of this.#sessions.values()) {
      if (session.usedAtMs > before) break;
      this.#drop(session);
    }
  }

  /** Drops least recently used sessions, but never the last one, which is in use. */
  #trim(tooMany: () => boolean): void {
    for (const session of this.#sessions.values()) {
      if (!tooMany() || this.#sessions.size === 1) break;
      this.#drop(session);
    }
  }

  #drop(session: Session): void {
    this.#sessions.delete(session.id);
    for (const prefix of session.prefixes) this.#prefixes.delete(prefix);
  }
}

/** Short, since it stands before each prefix; one character a byte. */
export function seedOf(owner: string): string {
  return hash('sha256', owner, 'binary').slice(0, 16);
}

/** The id of a session that begins with this history. `seed`: of its owner, '' where there is none. */
export function sessionIdOf(seed: string, history: string): string {
  return hexOf(seed === '' ? history : hash('sha256', Buffer.from(seed + history, 'latin1'), 'binary'));
}
