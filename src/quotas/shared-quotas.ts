import { Inject, Injectable } from '@nestjs/common';
import type { WallClock } from '../common/time/clock.js';
import { WALL_CLOCK } from '../contracts/ports.js';
import { QuietPart } from '../state/quiet-part.js';
import { ignoreUnavailable, SHARED_STATE, type SharedState } from '../state/shared-state.js';
import type { StoreEvent } from '../state/shared-types.js';
import type { MeterPeers, QuotaMeter } from './quota-meter.js';
import { quotaKey } from './quota-place.js';
import { QuotaRegistry } from './quota.registry.js';
import type { Use } from './window/quota-window.js';

/** So many parts of a window are kept: what is counted leaves it in as many steps. */
const PARTS = 120;
const TOPIC = 'reserved';

interface Booking {
  readonly name: string;
  /** Begin of the part of time in which it was used; wall clock. */
  readonly part: number;
  readonly amount: number;
  readonly keptMs: number;
}

/**
 * Quotas that all replicas count together: each books in its own meters at once, adds it to the sums in the store, and
 * hears what the others add. Without a store each goes on from what it knows, and tells it afterwards. Lives as long as the
 * service.
 */
@Injectable()
export class SharedQuotas extends QuietPart implements MeterPeers {
  readonly #meters = new Map<string, QuotaMeter>();
  readonly #names = new Map<QuotaMeter, string>();
  /** Reserved tokens of others: meter → replica → tokens. */
  readonly #reserved = new Map<QuotaMeter, Map<string, number>>();
  /** Booked while the store was away. */
  readonly #unsent = new Map<string, Booking>();
  /** Booked since the sums were asked for, and so not among them. */
  #since: Map<QuotaMeter, number> | null = null;

  constructor(
    private readonly registry: QuotaRegistry,
    @Inject(SHARED_STATE) private readonly state: SharedState | null,
    @Inject(WALL_CLOCK) private readonly wallClock: WallClock,
  ) {
    super();
    if (state === null) return;
    registry.share(this);
    state.join(this);
  }

  booked(meter: QuotaMeter, amount: number, nowMs: number): void {
    if (this.#since !== null) this.#since.set(meter, (this.#since.get(meter) ?? 0) + amount);
    const partMs = Math.max(1, Math.floor(meter.quota.per.ms / PARTS));
    const part = Math.floor(nowMs / partMs) * partMs;
    const name = this.#nameOf(meter);
    this.#send({ name, part, amount, keptMs: meter.quota.per.ms + 2 * partMs });
  }

  reserved(meter: QuotaMeter, tokens: number): void {
    if (this.state?.ok !== true) return;
    this.state.store.tell(TOPIC, JSON.stringify([this.#nameOf(meter), tokens])).catch(ignoreUnavailable);
  }

  joined(): void {
    if (this.state === null) return;
    for (const { meter } of this.registry.meters) this.#nameOf(meter);
    const unsent = [...this.#unsent.values()];
    this.#unsent.clear();
    for (const booking of unsent) this.#send(booking);
    const meters = [...this.#meters];
    this.#since = new Map();
    this.state.store
      .sums(meters.map(([name]) => name))
      .then((sums) => {
        for (const [i, [, meter]] of meters.entries()) this.#resume(meter, sums[i] ?? new Map());
      }, ignoreUnavailable)
      .finally(() => (this.#since = null));
  }

  override lost(): void {
    // Whoever is away may have ended; those that have not tell it again with their next request.
    for (const [meter, others] of this.#reserved) {
      others.clear();
      meter.reservedElsewhere(0);
    }
  }

  happened(event: StoreEvent): void {
    if (event.kind === 'counted') this.#meters.get(event.sum)?.adopt(event.amount, this.wallClock());
    else if (event.kind === 'gone') this.#forget(event.replica);
    else if (event.kind === 'told' && event.topic === TOPIC) {
      const [name, tokens] = JSON.parse(event.text) as [string, number];
      const meter = this.#meters.get(name);
      if (meter !== undefined) this.#heard(meter, event.replica, tokens);
    }
  }

  /** What was counted here while the store was away, or has lost its memory, is not forgotten for its sake. */
  #resume(meter: QuotaMeter, parts: ReadonlyMap<number, number>): void {
    const nowMs = this.wallClock();
    const partMs = Math.max(1, Math.floor(meter.quota.per.ms / PARTS));
    // As late as anything in the part can have been.
    const uses = [...parts].map(([part, amount]): Use => [Math.min(nowMs, part + partMs - 1), amount]);
    const before = meter.used(nowMs);
    const kept = meter.uses(nowMs);
    meter.restore(uses, nowMs);
    const since = this.#since?.get(meter) ?? 0;
    if (since !== 0) meter.adopt(since, nowMs);
    if (meter.used(nowMs) < before) meter.restore(kept, nowMs);
  }

  #heard(meter: QuotaMeter, replica: string, tokens: number): void {
    const others = this.#reserved.get(meter) ?? new Map<string, number>();
    this.#reserved.set(meter, others);
    if (tokens > 0) others.set(replica, tokens);
    else others.delete(replica);
    meter.reservedElsewhere([...others.values()].reduce((sum, one) => sum + one, 0));
  }

  #forget(replica: string): void {
    for (const meter of this.#reserved.keys()) this.#heard(meter, replica, 0);
  }

  #send(booking: Booking): void {
    const { amount, keptMs, name, part } = booking;
    if (this.state?.ok !== true) {
      this.#keep(booking);
      return;
    }
    this.state.store.count(name, part, amount, keptMs).catch((error: unknown) => {
      ignoreUnavailable(error);
      this.#keep(booking);
    });
  }

  #keep(booking: Booking): void {
    const id = `${booking.part} ${booking.name}`;
    const amount = booking.amount + (this.#unsent.get(id)?.amount ?? 0);
    this.#unsent.set(id, { ...booking, amount });
  }

  #nameOf(meter: QuotaMeter): string {
    const known = this.#names.get(meter);
    if (known !== undefined) return known;
    for (const placed of this.registry.meters) {
      const name = `quota:${quotaKey(placed, placed.meter.quota)}`;
      this.#names.set(placed.meter, name);
      this.#meters.set(name, placed.meter);
    }
    return this.#names.get(meter) ?? '';
  }
}
