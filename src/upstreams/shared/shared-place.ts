import type { Lease } from '../lease.js';
import type { Grantable, SharedPool } from './shared-pool.js';

/** A slot, or the place of a trial, that the store gave to this replica. */
export interface Permit {
  readonly id: string;
  /** When the store was last asked to keep it; monotonic. */
  renewedAt: number;
}

/**
 * What this replica has of one upstream whose slots, or whose group's, are shared, of the trials of one counter, or of one consumer. Its permits
 * are all alike: which of them an exchange runs on does not matter.
 */
export class SharedPlace {
  readonly permits: Permit[] = [];
  readonly leases = new Set<Lease>();

  constructor(
    private readonly slots: Grantable,
    /** What the store counts. */
    readonly pools: readonly SharedPool[],
    /**
     * Its own slots where only the pools it shares with other places have a limit. Trap: without it one of these places would
     * use what came for another, and the permit would go back while it is in use.
     */
    readonly own: SharedPool | null = null,
  ) {}

  /** What runs on it. */
  get active(): number {
    return this.slots.active;
  }

  /** Permits that nothing runs on. */
  get surplus(): number {
    return this.permits.length - this.active;
  }

  add(permit: Permit): void {
    this.permits.push(permit);
    this.own?.received();
    for (const pool of this.pools) pool.received();
  }

  /** Null where there is none: what runs was claimed without a store. */
  takeOut(): Permit | null {
    const permit = this.permits.pop();
    if (permit === undefined) return null;
    this.own?.gaveBack();
    for (const pool of this.pools) pool.gaveBack();
    return permit;
  }
}
