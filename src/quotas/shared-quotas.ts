import { Inject, Injectable, type OnApplicationShutdown } from '@nestjs/common';
import type { WallClock } from '../common/time/clock.js';
import { WALL_CLOCK } from '../contracts/ports.js';
import { QuietPart } from '../state/quiet-part.js';
import { ignoreUnavailable, SHARED_STATE, type SharedState } from '../state/shared-state.js';
import type { ReserveAnswer, SumAsk, SumChange, SumMemory, SumStates } from '../state/shared-sums.js';
import type { StoreEvent } from '../state/shared-types.js';
import type { QuotaHold } from './quota-hold.js';
import type { MeterPeers, QuotaMeter } from './quota-meter.js';
import { QuotaRegistry } from './quota.registry.js';
import { type HeldOf, type HoldKeeper, SharedHold } from './shared-hold.js';
import { SharedQuota } from './shared-quota.js';
import type { Use } from './window/quota-window.js';

/** Something was given back since: then it is worth asking again soon. */
const OPENED_MS = 1000;
/** While nothing is given out, that may end at any time. */
const SYNC_RETRY_MS = 250;

/**
 * Quotas that all replicas count together. What a request may use is taken in the store, of all its quotas or of none, in one
 * round trip; the meters here are copies that hear what the others do, so that what is used up is seen without asking. Without a
 * store, and while it gives nothing out, each replica has an even share of what was left. Lives as long as the service.
 */
@Injectable()
export class SharedQuotas extends QuietPart implements MeterPeers, HoldKeeper, OnApplicationShutdown {
  readonly #quotas = new Map<QuotaMeter, SharedQuota>();
  readonly #byName = new Map<string, SharedQuota>();
  /** What is known here has been told, but this replica is not joined yet: nothing may be added to it. */
  #telling = false;
  #syncing: NodeJS.Timeout | null = null;
  #asked = 0;
  /** What happened behind the sums that are about to be learnt. */
  #behind: StoreEvent[] | null = null;

  constructor(
    registry: QuotaRegistry,
    @Inject(SHARED_STATE) private readonly state: SharedState | null,
    @Inject(WALL_CLOCK) private readonly wallClock: WallClock,
  ) {
    super();
    if (state === null) return;
    for (const placed of registry.meters) {
      const quota = new SharedQuota(placed);
      this.#quotas.set(placed.meter, quota);
      this.#byName.set(quota.sum.name, quota);
      placed.meter.peers = this;
      // Until the store is met.
      placed.meter.alone(0, wallClock());
    }
    state.join(this);
  }

  onApplicationShutdown(): void {
    this.#stopSync();
  }

  get ok(): boolean {
    return this.state?.ok === true;
  }

  take(meters: readonly QuotaMeter[], tokens: number): QuotaHold | null | Promise<QuotaHold | null> {
    return this.state?.ok === true ? this.#ask(meters, tokens, this.state) : this.#takeAlone(meters, tokens);
  }

  async #ask(meters: readonly QuotaMeter[], tokens: number, state: SharedState): Promise<QuotaHold | null> {
    const openings = meters.map((meter) => meter.openings);
    let answer: ReserveAnswer;
    try {
      answer = await state.store.reserve(meters.map((meter) => this.#askOf(meter, tokens)));
    } catch (error) {
      ignoreUnavailable(error);
      return state.ok ? null : this.#takeAlone(meters, tokens);
    }
    const nowMs = this.wallClock();
    if (answer.kind === 'held back') {
      // Others are about to tell what they counted alone.
      if (meters.some(({ isAlone }) => !isAlone)) this.#goAlone(meters, nowMs);
      return this.#takeAlone(meters, tokens);
    }
    if (answer.kind === 'used up') {
      for (const { ask, ms } of answer.closed) {
        const meter = meters[ask];
        // Trap: what was given back behind the answer is heard before it.
        const opened = meter?.openings !== openings[ask];
        meter?.shut(opened ? Math.min(ms, OPENED_MS) : ms, nowMs);
      }
      return null;
    }
    const { parts } = answer;
    for (const meter of meters)
      if (meter.isAlone && meter.quota.unit === 'requests') this.#quotas.get(meter)?.told.add(1, nowMs);
    if (this.#syncing !== null) this.#sync();
    return this.#hold(meters, tokens, nowMs, (i) => parts[i] ?? null);
  }

  #takeAlone(meters: readonly QuotaMeter[], tokens: number): QuotaHold | null {
    const nowMs = this.wallClock();
    if (this.#telling || this.state?.rejecting === true) return null;
    for (const meter of meters) if (meter.remaining(nowMs) <= 0) return null;
    const hold = this.#hold(meters, tokens, nowMs, () => null);
    const changes: SumChange[] = [];
    for (const meter of meters) {
      const requests = meter.quota.unit === 'requests';
      this.#add(changes, meter, null, requests ? 1 : 0, requests ? 0 : tokens, nowMs);
    }
    this.#settle(changes);
    return hold;
  }

  #hold(
    meters: readonly QuotaMeter[],
    tokens: number,
    nowMs: number,
    partOf: (place: number) => number | null,
  ): SharedHold {
    const held = meters.map((meter, i): HeldOf => {
      const requests = meter.quota.unit === 'requests';
      if (!requests) meter.hold(tokens);
      return { meter, booked: requests ? meter.book(1, nowMs) : null, part: partOf(i) };
    });
    return new SharedHold(this, held, tokens);
  }

  ended(held: readonly HeldOf[], reserved: number, used: number, sent: boolean): void {
    const nowMs = this.wallClock();
    const changes: SumChange[] = [];
    for (const { booked, meter, part } of held) {
      if (booked === null) {
        meter.hold(-reserved);
        if (used > 0) meter.book(used, nowMs);
        this.#add(changes, meter, null, used, -reserved, nowMs);
      } else if (!sent) this.#takeBack(changes, { booked, meter, part }, nowMs);
    }
    this.#settle(changes);
  }

  /** Where nobody knows any more in which part of time it stands, it stays counted: never too little. */
  #takeBack(
    changes: SumChange[],
    { booked, meter, part }: HeldOf & { readonly booked: object },
    nowMs: number,
  ): void {
    const known = meter.takeBack(booked, 1, nowMs);
    if (this.state?.ok === true) {
      if (part === null) return;
      this.#add(changes, meter, part, -1, 0, nowMs);
      if (!known) meter.adopt(-1, nowMs);
    } else if (known && part === null && !this.#telling) {
      this.#quotas.get(meter)?.untold.add(-1, nowMs);
    }
  }

  /** To what the store is told or, while it is away, will be. */
  #add(
    changes: SumChange[],
    meter: QuotaMeter,
    part: number | null,
    used: number,
    reserved: number,
    nowMs: number,
  ): void {
    const quota = this.#quotas.get(meter);
    if (quota === undefined) return;
    if (this.state?.ok === true) {
      quota.since += used;
      if (used > 0 && meter.isAlone) quota.told.add(used, nowMs);
      changes.push({ sum: quota.sum, part, used, reserved });
    } else if (used > 0) quota.untold.add(used, nowMs);
  }

  #settle(changes: readonly SumChange[]): void {
    if (changes.length === 0 || this.state === null) return;
    this.state.store.settle(changes).catch(ignoreUnavailable);
  }

  #askOf(meter: QuotaMeter, tokens: number): SumAsk {
    const { limit, unit } = meter.quota;
    const sum = this.#quotas.get(meter)?.sum;
    if (sum === undefined) throw new Error('a quota that was made after the service began');
    return unit === 'requests'
      ? { sum, limit, used: 1, reserved: 0 }
      : { sum, limit, used: 0, reserved: tokens };
  }

  // ---- the life of the store

  /** Told before this replica is enrolled: from then on others may go by the sums. */
  override enrolling(): void {
    if (this.state === null || this.#quotas.size === 0) return;
    this.#telling = true;
    const nowMs = this.wallClock();
    const memories: SumMemory[] = [];
    const telling = new Map<SharedQuota, readonly Use[]>();
    for (const quota of this.#quotas.values()) {
      const untold = quota.untold.takeAll();
      telling.set(quota, untold);
      memories.push(quota.memory(untold, nowMs));
    }
    this.state.store.resume(memories).then(
      () => {
        for (const [quota, untold] of telling) quota.told.addAll(untold);
      },
      (error: unknown) => {
        ignoreUnavailable(error);
        for (const [quota, untold] of telling) quota.untold.addAll(untold);
      },
    );
  }

  joined(): void {
    this.#telling = false;
    const changes: SumChange[] = [];
    // What ended on the way.
    for (const { meter, sum, toldReserved, untold } of this.#quotas.values()) {
      const reserved = meter.held - toldReserved;
      const used = untold.takeAll().reduce((all, [, amount]) => all + amount, 0);
      if (used !== 0 || reserved !== 0) changes.push({ sum, part: null, used, reserved });
    }
    this.#settle(changes);
    this.#sync();
  }

  override lost(): void {
    this.#telling = false;
    this.#stopSync();
    this.#goAlone(this.#quotas.keys(), this.wallClock());
  }

  #goAlone(meters: Iterable<QuotaMeter>, nowMs: number): void {
    const { state } = this;
    const replicas = state?.onError === 'local' ? state.replicas : 0;
    for (const meter of meters) meter.alone(replicas, nowMs);
    if (state?.ok === true && this.#syncing === null) this.#syncIn(SYNC_RETRY_MS);
  }

  happened(event: StoreEvent): void {
    // Trap: events are heard before whoever waits for an answer that came with them goes on.
    if (event.kind === 'mark') this.#behind = event.number === this.#asked ? [] : null;
    else if (this.#behind === null) this.#apply(event);
    else this.#behind.push(event);
  }

  #apply(event: StoreEvent): void {
    if (event.kind === 'counted')
      this.#byName.get(event.sum)?.counted(event.part, event.amount, this.wallClock());
    else if (event.kind === 'gone')
      // What it had reserved is asked for anew: the store takes it for used.
      for (const quota of this.#byName.values()) quota.reservedBy(event.replica, 0);
    else if (event.kind === 'reserved') this.#byName.get(event.sum)?.reservedBy(event.replica, event.tokens);
  }

  /** Learns the sums; each goes on with its share until others can have told what they know. */
  #sync(): void {
    this.#stopSync();
    const { state } = this;
    if (state === null || this.#quotas.size === 0) return;
    const quotas = [...this.#quotas.values()];
    for (const quota of quotas) quota.since = 0;
    const asked = ++this.#asked;
    const sums = quotas.map(({ sum }) => sum);
    state.store.sums(sums, asked).then(
      (answer) => {
        if (asked !== this.#asked) return;
        this.#learn(quotas, answer, state.store.replica);
        this.#listen();
      },
      (error: unknown) => {
        ignoreUnavailable(error);
        if (asked !== this.#asked) return;
        this.#listen();
        if (state.ok) this.#syncIn(SYNC_RETRY_MS);
      },
    );
  }

  #learn(quotas: readonly SharedQuota[], { heldBackMs, nowMs, states }: SumStates, self: string): void {
    if (heldBackMs > 0) {
      this.#syncIn(Math.min(heldBackMs, SYNC_RETRY_MS));
      return;
    }
    const wallMs = this.wallClock();
    for (const [i, quota] of quotas.entries()) {
      const state = states[i];
      if (state !== undefined) quota.rejoin(state, nowMs, self, wallMs);
    }
  }

  #listen(): void {
    const behind = this.#behind ?? [];
    this.#behind = null;
    for (const event of behind) this.#apply(event);
  }

  #syncIn(ms: number): void {
    this.#syncing = setTimeout(() => this.#sync(), ms);
    this.#syncing.unref();
  }

  #stopSync(): void {
    this.#asked++;
    this.#listen();
    if (this.#syncing !== null) clearTimeout(this.#syncing);
    this.#syncing = null;
  }
}
