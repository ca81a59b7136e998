/** The names of keys and channels. In a Redis Cluster all of them must share a hash tag, or no script could use two. */
export class RedisKeys {
  readonly #prefix: string;

  constructor(prefix: string, clustered: boolean) {
    const tagged = /\{[^}]+\}/.test(prefix);
    this.#prefix = clustered && !tagged ? `{${prefix}}` : prefix;
  }

  get channel(): string {
    return `${this.#prefix}events`;
  }

  /** In the order in which the scripts name them. */
  get heldBack(): string {
    return `${this.#prefix}held-back`;
  }

  get rollCall(): string {
    return `${this.#prefix}roll-call`;
  }

  get members(): string {
    return `${this.#prefix}members`;
  }

  get excesses(): string {
    return `${this.#prefix}excesses`;
  }

  get epoch(): string {
    return `${this.#prefix}epoch`;
  }

  /** Which was the last telling of each replica. */
  get tellings(): string {
    return `${this.#prefix}tellings`;
  }

  /** Which Redis the epoch is of. */
  get origin(): string {
    return `${this.#prefix}origin`;
  }

  /** What a replica writes to see whether it can. */
  get probe(): string {
    return `${this.#prefix}probe`;
  }

  pool(name: string): string {
    return `${this.#prefix}pool:${name}`;
  }

  waits(name: string): string {
    return `${this.#prefix}waits:${name}`;
  }

  /** Streak, rest and quiet time. */
  rest(name: string): [streak: string, rest: string, quiet: string] {
    return [`${this.#prefix}streak:${name}`, `${this.#prefix}rest:${name}`, `${this.#prefix}quiet:${name}`];
  }

  fact(name: string): string {
    return `${this.#prefix}held:${name}`;
  }

  sum(name: string): string {
    return `${this.#prefix}sum:${name}`;
  }

  reserved(name: string): string {
    return `${this.#prefix}reserved:${name}`;
  }

  /** Ids of histories. */
  get sessions(): string {
    return `${this.#prefix}sessions`;
  }

  /** Followed by the id of a history: its prefixes. */
  get prefixesOf(): string {
    return `${this.#prefix}prefixes-of:`;
  }

  prefix(hash: string): string {
    return `${this.#prefix}session:${hash}`;
  }

  lead(task: string): string {
    return `${this.#prefix}lead:${task}`;
  }
}
