import type { ErrorClass } from '../../contracts/error-class.js';
import type { PoolKey } from './pool-key.js';
import type { UpstreamKeys } from './upstream-keys.js';

/** What the walk must know of a failed attempt. */
export interface WalkedFailure {
  readonly class: ErrorClass;
  readonly timedOut: boolean;
}

/**
 * The way of one request through the keys of one upstream: which key is tried, which next, and when it is time for
 * another upstream. Lives for one claim. Books nothing.
 */
export class KeyWalk {
  readonly #tried = new Set<PoolKey>();
  #key: PoolKey | null;
  #retries: number;
  #broken = false;
  #retried = false;

  /**
   * `retries`: at once, after an error of the upstream itself. `preferred`: id of the key to begin with, where it can be
   * used; null = the one whose turn it is.
   */
  constructor(
    private readonly keys: UpstreamKeys,
    retries: number,
    preferred: string | null = null,
  ) {
    this.#retries = retries;
    const first = preferred === null ? null : keys.named(preferred);
    if (first === null) this.#key = this.#take();
    else this.#tried.add((this.#key = first));
  }

  /** Null: none can be used, or the walk is over. */
  get key(): PoolKey | null {
    return this.#key;
  }

  /** The upstream failed by itself at least once: its ladder takes a step when the walk ends without an answer. */
  get broken(): boolean {
    return this.#broken;
  }

  /** The next attempt is an immediate retry. */
  get retried(): boolean {
    return this.#retried;
  }

  /** Goes on after a failure; `key` is then the next one, or null. */
  fail({ class: name, timedOut }: WalkedFailure): void {
    const failed = this.#key;
    this.#key = null;
    this.#retried = false;
    if (name === 'server_error') {
      this.#broken = true;
      if (timedOut || this.#retries === 0) return;
      this.#retries--;
      this.#retried = true;
      this.#key = this.#take() ?? failed;
      return;
    }
    // Every usable key of a model before a weaker model; but no key makes a model appear, or a prompt shorter.
    if (name !== 'model_gone' && name !== 'context_length' && name !== 'bad_request')
      this.#key = this.#take();
  }

  /** Nothing is sent with this key after all: the next one, or null. */
  skip(): PoolKey | null {
    this.#retried = false;
    return (this.#key = this.#take());
  }

  /** No further key is tried, whatever may be left. */
  stop(): void {
    this.#key = null;
  }

  #take(): PoolKey | null {
    const key = this.keys.pick(this.#tried);
    if (key !== null) this.#tried.add(key);
    return key;
  }
}
