export interface ModelWaiter {
  readonly number: number;
  readonly by: number;
  readonly ids: readonly string[];
  readonly priority: number;
}

export interface ModelHolder {
  readonly number: number;
  readonly by: number;
  readonly id: string;
  /** Its lease has lapsed while its replica was frozen: nobody counts it until that speaks again. */
  forgotten: boolean;
  /** It ran on while its replica slept longer than its lease, and somebody else may have its slot. */
  overslept: boolean;
}

/** Whom a slot goes to. `fair`: the best of all replicas; `own`: the best of any one, as each looks when it likes. */
export type Order = 'fair' | 'own';

/** What two replicas with one store promise about slots and waiting, in the plainest words. */
export class FleetModel {
  holders: ModelHolder[] = [];
  waiting: ModelWaiter[] = [];
  /** Slots of replicas that died: taken until their leases lapse. */
  orphans: ModelHolder[] = [];
  /** Stands still; null = none. */
  frozen: number | null = null;
  /** The store came back empty: nothing is given out. */
  heldBack = false;
  /** Nobody reaches the store. */
  away = false;
  /** What was held when it went: it stays with who held it. */
  kept: readonly ModelHolder[] = [];
  order: Order = 'fair';
  /** Replicas whose leases still stand. */
  dead: string[] = [];
  numbers = 0;

  constructor(
    readonly limits: Readonly<Record<string, number>>,
    /** Two processes, not one. */
    readonly shared: boolean,
  ) {}

  get ids(): string[] {
    return Object.keys(this.limits);
  }

  get overslept(): boolean {
    return [...this.holders, ...this.orphans].some(({ overslept }) => overslept);
  }

  taken(id: string): number {
    const held = this.holders.filter((holder) => holder.id === id && !holder.forgotten).length;
    return held + this.orphans.filter((orphan) => orphan.id === id).length;
  }

  isFree(id: string): boolean {
    return !this.heldBack && this.taken(id) < (this.limits[id] as number);
  }

  /** Whether a replica has a slot from before the store went away that nothing runs on. */
  keeps(by: number, id: string): boolean {
    const of = (holders: readonly ModelHolder[]) =>
      holders.filter((holder) => holder.by === by && holder.id === id).length;
    return of(this.kept) > of(this.holders);
  }

  /** What a request for these gets that does not wait. */
  first(ids: readonly string[]): string | null {
    return ids.find((id) => this.isFree(id)) ?? null;
  }

  /** Whose turn it is at this upstream: priority, then arrival. */
  head(id: string, by: number | null = null): ModelWaiter | null {
    const heads = this.waiting
      .filter((waiter) => waiter.ids.includes(id) && waiter.by !== this.frozen)
      .filter((waiter) => by === null || waiter.by === by)
      .toSorted((a, b) => b.priority - a.priority || a.number - b.number);
    return heads[0] ?? null;
  }

  /** Nobody waits for what is free, except who stands still. */
  get quiet(): boolean {
    return this.ids.every((id) => !this.isFree(id) || this.head(id) === null);
  }

  holds(number: number, by: number, id: string): void {
    this.holders.push({ number, by, id, forgotten: false, overslept: false });
  }
}
