import { Inject, Injectable } from '@nestjs/common';
import type { Clock } from '../../common/time/clock.js';
import { ConfigStore } from '../../config/config.store.js';
import type { GatewayConfig, ModelConfig, QueueConfig, UpstreamConfig } from '../../config/gateway-config.js';
import { CLOCK } from '../../contracts/ports.js';
import { SlotMetrics } from '../../observability/metrics/slot.metrics.js';
import type { Upstream } from '../upstream.js';
import { mayWait } from './may-wait.js';
import { setNodeAlarm, type SetAlarm } from './alarm.js';
import { Dispatcher } from './dispatcher.js';
import { ModelQueue } from './model-queue.js';
import type { Seat } from './seat.js';
import { SlotPool } from './slot-pool.js';
import { type RoomSeat, SlotRoom, type RoomTools } from './slot-room.js';
import { Sequence } from './waiting-line.js';

/**
 * The slot groups, the queues and the rooms in which requests wait, as the configuration has them. An upstream that is in
 * no group, has no pause and stands in no model with a queue gets no seat, and costs nothing here.
 */
@Injectable()
export class SlotRooms {
  readonly sequence = new Sequence();
  readonly dispatcher: Dispatcher;
  readonly #rooms: SlotRoom[] = [];
  readonly #ofGroup = new Map<string, SlotRoom>();
  readonly #queues = new Map<ModelConfig, ModelQueue>();
  readonly #seats = new Map<Upstream, RoomSeat>();
  readonly #awaited: ReadonlySet<UpstreamConfig>;
  readonly #tools: RoomTools;

  constructor(
    store: ConfigStore,
    private readonly metrics: SlotMetrics,
    @Inject(CLOCK) clock: Clock,
  ) {
    const config = store.current;
    const setAlarm: SetAlarm = setNodeAlarm;
    this.dispatcher = new Dispatcher({
      clock,
      setAlarm,
      seatOf: (upstream) => this.#seats.get(upstream),
      spilled: (model, upstream, reason) => this.metrics.spilled(model, upstream.id, reason),
    });
    const freed = (room: SlotRoom) => this.dispatcher.dispatch(room);
    this.#tools = { clock, setAlarm, sequence: this.sequence, freed };
    this.#awaited = awaitedUpstreams(config);
    for (const { id, limit, settleMs } of config.slotGroups)
      this.#ofGroup.set(id, this.#room({ id, slots: new SlotPool(limit), settleMs }));
    for (const model of config.models) this.#addQueue(model);
    this.metrics.watch(
      () => this.#groupStates(),
      () => [...this.#queues].map(([{ name }, { depth }]) => ({ model: name, depth })),
    );
  }

  /** Gives an upstream its seat where it needs one. Called once for each. */
  enter(upstream: Upstream): void {
    const { config, slots } = upstream;
    const { settleMs, slotGroup } = config;
    if (slotGroup === null && settleMs === 0 && !this.#awaited.has(config)) return;
    const room = this.#ofGroup.get(slotGroup?.id ?? '') ?? this.#room(null);
    const { id } = upstream;
    const seat = room.add({ slots, settleMs, hold: this.metrics.hold(id), idle: this.metrics.idle(id) });
    this.#seats.set(upstream, seat);
    upstream.seat = seat satisfies Seat;
    upstream.backoff?.onRest(() => this.dispatcher.rested(room));
    upstream.backoff?.onWake(() => this.dispatcher.dispatch(room));
  }

  /** Null where requests for this model do not wait. */
  queueOf(model: ModelConfig): ModelQueue | null {
    return this.#queues.get(model) ?? null;
  }

  /** All in which somebody can wait. */
  get all(): readonly SlotRoom[] {
    return this.#rooms;
  }

  seatOf(upstream: Upstream): RoomSeat | undefined {
    return this.#seats.get(upstream);
  }

  /** Sends away all who wait, and whoever would wait later. */
  close(): void {
    this.dispatcher.close(this.#rooms);
  }

  #room(group: SlotRoom['group']): SlotRoom {
    const room = new SlotRoom(this.#tools, group);
    this.#rooms.push(room);
    return room;
  }

  #addQueue(model: ModelConfig): void {
    if (!mayWait(model)) return;
    const { name, queue } = model;
    this.#queues.set(
      model,
      new ModelQueue(name, queue ?? HOME_ONLY, (outcome, seconds) =>
        this.metrics.waited(name, outcome, seconds),
      ),
    );
  }

  *#groupStates() {
    for (const [id, { group, sharedProbes }] of this.#ofGroup)
      if (group !== null) yield { id, inflight: group.slots.active + sharedProbes, limit: group.slots.limit };
  }
}

/** Requests wait for the upstream of their conversation, and for no other. */
const HOME_ONLY: QueueConfig = { size: Infinity, waitMs: 0, maxBytes: Infinity, ageingMs: 0 };

/** Those that somebody may wait for. */
function awaitedUpstreams(config: GatewayConfig): ReadonlySet<UpstreamConfig> {
  return new Set(config.models.filter(mayWait).flatMap(({ upstreams }) => [...upstreams]));
}
