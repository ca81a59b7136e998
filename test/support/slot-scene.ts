import type { QueueConfig, SpillConfig } from '../../src/config/gateway-config.js';
import type { SetAlarm } from '../../src/upstreams/concurrency/alarm.js';
import type { Claim, Claimable } from '../../src/upstreams/concurrency/claimable.js';
import { Dispatcher } from '../../src/upstreams/concurrency/dispatcher.js';
import { ModelQueue } from '../../src/upstreams/concurrency/model-queue.js';
import { SlotPool } from '../../src/upstreams/concurrency/slot-pool.js';
import { type RoomSeat, type RoomTools, SlotRoom } from '../../src/upstreams/concurrency/slot-room.js';
import { Waiter, type WaitResult } from '../../src/upstreams/concurrency/waiter.js';
import { Sequence } from '../../src/upstreams/concurrency/waiting-line.js';
import type { SpillReason } from '../../src/upstreams/concurrency/spill.js';
import type { Lease } from '../../src/upstreams/lease.js';
import type { Upstream } from '../../src/upstreams/upstream.js';

/** Time that only moves when it is told to, and the alarms that ring on its way. */
export class ManualTime {
  time = 1000;
  readonly #alarms = new Set<{ readonly at: number; readonly ring: () => void }>();

  now(): number {
    return this.time;
  }

  readonly setAlarm: SetAlarm = (afterMs, ring) => {
    const alarm = { at: this.time + afterMs, ring };
    this.#alarms.add(alarm);
    return () => this.#alarms.delete(alarm);
  };

  get alarms(): number {
    return this.#alarms.size;
  }

  /** When the next one rings; Infinity where none is set. */
  get nextAlarmAt(): number {
    return Math.min(Infinity, ...[...this.#alarms].map(({ at }) => at));
  }

  advance(ms: number): void {
    const end = this.time + ms;
    for (;;) {
      const due = [...this.#alarms].filter(({ at }) => at <= end).toSorted((a, b) => a.at - b.at)[0];
      if (due === undefined) break;
      this.#alarms.delete(due);
      this.time = Math.max(this.time, due.at);
      due.ring();
    }
    this.time = end;
  }
}

export interface SceneUpstream extends Upstream {
  /** Rests until then. */
  restsUntil: number;
}

export interface SceneWait {
  readonly waiter: Waiter;
  /** Null while it waits. */
  result: WaitResult | null;
}

const QUEUE: QueueConfig = { size: 1000, waitMs: 10_000, maxBytes: 1e9, ageingMs: 0 };

/** Slots, groups and queues with nothing around them. */
export class SlotScene {
  readonly clock = new ManualTime();
  readonly sequence = new Sequence();
  readonly spills: string[] = [];
  /** Of the leases on entries with `spill_after`. */
  readonly reasons = new Map<Lease, SpillReason>();
  readonly waits: string[] = [];
  readonly rooms: SlotRoom[] = [];
  readonly dispatcher: Dispatcher;
  readonly #seats = new Map<Upstream, RoomSeat>();
  readonly #tools: RoomTools;
  /** Told of each lease before its reason is. */
  readonly #keeper = { took: (lease: Lease) => void (this.#newest = lease), givesBack: () => {} };
  #newest: Lease | null = null;

  constructor() {
    const { clock, sequence } = this;
    this.dispatcher = new Dispatcher({
      clock,
      setAlarm: clock.setAlarm,
      seatOf: (upstream) => this.#seats.get(upstream),
      spilled: (model, upstream, reason) => {
        this.spills.push(`${model}/${upstream.id}=${reason}`);
        if (this.#newest !== null) this.reasons.set(this.#newest, reason);
      },
    });
    const freed = (room: SlotRoom) => this.dispatcher.dispatch(room);
    this.#tools = { clock, setAlarm: clock.setAlarm, sequence, freed };
  }

  room(group: { limit: number; settleMs?: number } | null = null): SlotRoom {
    const room = new SlotRoom(
      this.#tools,
      group === null ? null : { id: 'g', slots: new SlotPool(group.limit), settleMs: group.settleMs ?? 0 },
    );
    this.rooms.push(room);
    return room;
  }

  upstream(
    id: string,
    limit: number,
    room = this.room(),
    settleMs = room.group?.settleMs ?? 0,
  ): SceneUpstream {
    const slots = new SlotPool(limit);
    const meter = { observe: () => {} };
    const seat = room.add({ slots, settleMs, hold: meter, idle: meter });
    const upstream = {
      id,
      slots,
      seat,
      restsUntil: 0,
      recovery: null,
      keeper: this.#keeper,
      trialOpen: () => false,
      restingMs: (now: number) => Math.max(0, upstream.restsUntil - now),
      opensMs: (now: number) => upstream.restingMs(now),
    } as unknown as SceneUpstream;
    this.#seats.set(upstream, seat);
    return upstream;
  }

  seat(upstream: Upstream): RoomSeat {
    return this.#seats.get(upstream) as RoomSeat;
  }

  rest(upstream: SceneUpstream, ms: number): void {
    upstream.restsUntil = this.clock.time + ms;
    this.dispatcher.rested(this.seat(upstream).room);
  }

  wake(upstream: SceneUpstream): void {
    upstream.restsUntil = 0;
    this.dispatcher.dispatch(this.seat(upstream).room);
  }

  queue(config: Partial<QueueConfig> = {}, model = 'm'): ModelQueue {
    return new ModelQueue(model, { ...QUEUE, ...config }, (outcome, seconds) =>
      this.waits.push(`${outcome}:${Math.round(seconds * 1000)}`),
    );
  }

  waiter(queue: ModelQueue, consumer = 'a', priority = 0, bytes = 1): Waiter {
    return new Waiter({ queue, consumer, priority, bytes, order: this.sequence.next() });
  }

  /** Claims a slot, or waits for one. */
  ask(
    waiter: Waiter,
    candidates: readonly Claimable[],
    tried: ReadonlySet<Upstream> | null = null,
  ): SceneWait {
    const wait: SceneWait = { waiter, result: null };
    const claim = this.dispatcher.claim(candidates, tried, waiter);
    if (claim !== null) return { waiter, result: claim };
    const leftMs = (waiter.queue?.config.waitMs ?? 0) - waiter.waitedMs(this.clock.time);
    const result = this.dispatcher.wait(waiter, candidates, tried, leftMs);
    if (!(result instanceof Promise)) return { waiter, result };
    void result.then((later) => {
      wait.result = later;
    });
    return wait;
  }
}

export function entry(upstream: Upstream, spill: SpillConfig | null = null): Claimable {
  return { upstream, gates: null, entry: { tier: 1, spill } };
}

export function claimOf({ result }: SceneWait): Claim<Claimable> | null {
  return result === null || 'unserved' in result ? null : result;
}

/** Lets promises speak. */
export async function told(): Promise<void> {
  for (let i = 0; i < 4; i++) await Promise.resolve();
}
