import type { Pool } from '../../state/shared-types.js';

/** What gives out as much as it is granted. */
export interface Grantable {
  readonly limit: number;
  /** What is in use. */
  readonly active: number;
  /** See `SlotPool.grant`. */
  grant(count: number, pausesCount: boolean): void;
}

/**
 * One limit that replicas share, as this one sees it: of an upstream, of a slot group, of trials, of a consumer. Owns what may be given
 * out here. Lives as long as the configuration.
 */
export class SharedPool implements Pool {
  readonly limit: number;
  /** Slots that this replica has from the store. */
  #inHand = 0;
  /** Slots held when the store went away. */
  #kept = 0;
  /** How far other replicas are above their even share. */
  readonly #excesses = new Map<string, number>();

  constructor(
    readonly name: string,
    private readonly slots: Grantable,
    limit = slots.limit,
    /** Without a store there is never less to use. */
    private readonly least = 0,
  ) {
    this.limit = limit;
    slots.grant(0, false);
  }

  get inHand(): number {
    return this.#inHand;
  }

  received(): void {
    this.#inHand++;
    this.slots.grant(this.#inHand, false);
  }

  gaveBack(): void {
    this.#inHand--;
    this.slots.grant(this.#inHand, false);
  }

  /** All that is held now is told to the store, and nothing else is in hand. */
  told(): void {
    this.#inHand = this.slots.active;
    this.slots.grant(this.#inHand, false);
  }

  /** No more than what runs. */
  freeze(): void {
    this.slots.grant(this.slots.active, true);
  }

  /** The store has gone: what is held stays with its holder. */
  keep(): void {
    this.#kept = this.slots.active;
    this.slots.grant(this.#kept, true);
  }

  /** What this replica may use without a store: what it held, or its even share of what others leave of the limit. */
  share(replicas: number): void {
    this.slots.grant(Math.max(this.#kept, this.shareOf(replicas)), true);
  }

  shareOf(replicas: number): number {
    let excess = 0;
    for (const slots of this.#excesses.values()) excess += slots;
    return Math.max(this.least, Math.floor(this.limit / Math.max(1, replicas)) - excess);
  }

  /** No more than what runs, and less with each that ends. */
  shut(): void {
    this.#kept = 0;
    this.slots.grant(0, true);
  }

  heard(replica: string, excess: number): void {
    if (excess > 0) this.#excesses.set(replica, excess);
    else this.#excesses.delete(replica);
  }

  forgetExcesses(): void {
    this.#excesses.clear();
  }
}
