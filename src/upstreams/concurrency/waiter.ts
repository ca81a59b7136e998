import type { Upstream } from '../upstream.js';
import type { Claim, Claimable } from './claimable.js';
import type { ModelQueue } from './model-queue.js';
import type { SlotRoom } from './slot-room.js';
import type { Standing, Ticket } from './waiting-line.js';

/** Why a wait ended without a slot. `closed`: nothing opens before the deadline. */
export type UnservedReason = 'queue_full' | 'queue_timeout' | 'shutting_down' | 'closed' | 'left';

/** No slot came of it. */
export interface Unserved {
  readonly unserved: UnservedReason;
}

/** What was waited for was no slot, and has come. */
export const CALLED = Object.freeze({ called: true });

export type WaitResult = Claim<Claimable> | Unserved;
export type WaitEnd = WaitResult | typeof CALLED;

export interface WaiterOptions {
  /** Null: it waits for the end of a pause only, in no queue. */
  readonly queue: ModelQueue | null;
  readonly consumer: string;
  readonly priority: number;
  /** Of the body it holds. */
  readonly bytes: number;
  readonly order: number;
}

/**
 * One request that may wait, through all its waits: what it waited so far, and the places it had. Made when its model has
 * a queue, lives as long as the request. Moved by the dispatcher only.
 */
export class Waiter implements Standing {
  readonly queue: ModelQueue | null;
  readonly consumer: string;
  readonly priority: number;
  readonly bytes: number;
  readonly order: number;
  readonly tickets = new Map<SlotRoom, Ticket<Waiter>>();
  /** Turns it has had in lines, for when it comes back. */
  readonly turns = new Map<SlotRoom, number>();
  candidates: readonly Claimable[] = [];
  tried: ReadonlySet<Upstream> | null = null;
  /** Some of the candidates are only eligible after a time. */
  spills = false;
  /** Of this wait. */
  budgetMs = 0;
  /** What a wait is called whose time is over. */
  inVain: UnservedReason = 'queue_timeout';
  /** Has stood in the queue before. */
  hadPlace = false;
  cancelAlarm: (() => void) | null = null;
  #waitedMs = 0;
  #since: number | null = null;
  #resolve: ((result: WaitEnd) => void) | null = null;

  constructor(options: WaiterOptions) {
    this.queue = options.queue;
    this.consumer = options.consumer;
    this.priority = options.priority;
    this.bytes = options.bytes;
    this.order = options.order;
  }

  get ageingMs(): number {
    return this.queue?.config.ageingMs ?? 0;
  }

  get waiting(): boolean {
    return this.#resolve !== null;
  }

  /** Its priority, with what ageing gave it in the best of its lines. */
  get lifted(): number {
    let best = this.priority;
    for (const ticket of this.tickets.values()) best = Math.max(best, ticket.priority);
    return best;
  }

  /** In all its waits together. */
  waitedMs(now: number): number {
    return this.#waitedMs + this.#thisWaitMs(now);
  }

  /** What is left before this wait is given up. */
  leftMs(now: number): number {
    return this.budgetMs - this.#thisWaitMs(now);
  }

  /** How many stand before it where it is nearest to being served, by arrival; 1 = next. 0 = it does not wait. */
  position(): number {
    let nearest = Infinity;
    for (const [{ line }, ticket] of this.tickets)
      nearest = Math.min(nearest, line.ahead(ticket.priority, this.order));
    return nearest === Infinity ? 0 : nearest + 1;
  }

  begin(now: number): Promise<WaitEnd> {
    this.#since = now;
    this.hadPlace = true;
    return new Promise((resolve) => {
      this.#resolve = resolve;
    });
  }

  /** Returns how long this wait was. */
  end(result: WaitEnd, now: number): number {
    const waitedMs = this.#thisWaitMs(now);
    this.#waitedMs += waitedMs;
    this.#since = null;
    const resolve = this.#resolve;
    this.#resolve = null;
    resolve?.(result);
    return waitedMs;
  }

  #thisWaitMs(now: number): number {
    return this.#since === null ? 0 : now - this.#since;
  }
}

/** What the wait counts as; null where it does not. */
export function outcomeOf(result: WaitEnd): 'served' | 'timeout' | 'left' | null {
  // Its wait for a slot is still to come.
  if (result === CALLED) return null;
  if (!('unserved' in result)) return 'served';
  const outcomes: Partial<Record<UnservedReason, 'timeout' | 'left'>> = {
    queue_timeout: 'timeout',
    left: 'left',
  };
  return outcomes[result.unserved] ?? null;
}
