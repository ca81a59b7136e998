import type { Claimable } from '../../src/upstreams/concurrency/claimable.js';
import type { ModelQueue } from '../../src/upstreams/concurrency/model-queue.js';
import type { Upstream } from '../../src/upstreams/upstream.js';
import { claimOf, entry, type SceneUpstream, type SceneWait, SlotScene, told } from './slot-scene.js';
import {
  type ModelEntry,
  type ModelQueueRules,
  type ModelRequest,
  type ModelUpstream,
  SpillModel,
} from './spill-model.js';

/** Where a request may go: upstreams by number, paid ones with their rule. */
export interface PlannedEntry {
  readonly upstream: number;
  readonly spill: { readonly afterMs: number; readonly minPriority: number } | null;
}

export interface Plan {
  /** Limits, by number. */
  readonly limits: readonly number[];
  readonly models: readonly {
    readonly entries: readonly PlannedEntry[];
    readonly size: number;
    readonly waitMs: number;
  }[];
  readonly events: readonly PlannedEvent[];
}

export type PlannedEvent = { readonly gapMs: number } & (
  | {
      readonly kind: 'comes';
      readonly model: number;
      readonly priority: number;
      /** Of each attempt: how long it takes, and whether it fails. */
      readonly attempts: readonly { readonly holdMs: number; readonly fails: boolean }[];
    }
  | { readonly kind: 'rests'; readonly upstream: number; readonly ms: number }
  | { readonly kind: 'leaves'; readonly which: number }
);

type Coming = Extract<PlannedEvent, { kind: 'comes' }>;

interface Live {
  readonly plan: Coming;
  readonly model: ModelRequest;
  readonly waiter: SceneWait['waiter'];
  readonly candidates: readonly Claimable[];
  readonly tried: Set<Upstream>;
  wait: SceneWait;
  attempts: number;
}

/** So many events never come in the same moment, and sums of their times stay exact. */
const PARTS = 1024;

/**
 * The same events in the real queue and in the model of costs, one after the other in simulated time. What came of each
 * request, and when, is written down by both in the same words.
 */
export class SpillSimulation {
  readonly scene = new SlotScene();
  readonly model: SpillModel;
  readonly real: string[] = [];
  readonly #upstreams: readonly SceneUpstream[];
  readonly #modelUpstreams: readonly ModelUpstream[];
  readonly #queues: readonly ModelQueue[];
  readonly #rules: readonly ModelQueueRules[];
  readonly #entries: readonly (readonly ModelEntry[])[];
  readonly #candidates: readonly (readonly Claimable[])[];
  readonly #live = new Set<Live>();
  /** Exchanges that run, and all that is planned, by time. */
  readonly #agenda: { readonly at: number; readonly happen: () => void }[] = [];
  #numbers = 0;

  constructor(plan: Plan) {
    const { scene } = this;
    this.#upstreams = plan.limits.map((limit, i) => scene.upstream(`u${i}`, limit));
    this.#modelUpstreams = plan.limits.map((limit, i) => ({
      id: `u${i}`, limit, restsUntil: 0, meanMs: null, held: [],
    })); // prettier-ignore
    this.model = new SpillModel(this.#modelUpstreams);
    this.#rules = plan.models.map(({ size, waitMs }) => ({ size, waitMs }));
    this.#queues = this.#rules.map((rules, i) => scene.queue(rules, `m${i}`));
    this.#entries = plan.models.map(({ entries }) =>
      entries.map(({ spill, upstream }) => ({
        upstream: this.#modelUpstreams[upstream] as ModelUpstream,
        spill,
      })),
    );
    this.#candidates = plan.models.map(({ entries }) =>
      entries.map(({ spill, upstream }) => entry(this.#upstreams[upstream] as Upstream, spill)),
    );
    let at = scene.clock.time;
    for (const [i, event] of plan.events.entries()) {
      at += event.gapMs;
      this.#agenda.push({ at: at + (i + 1) / PARTS, happen: () => this.#happens(event) });
    }
  }

  /** Until nothing is left to happen; `check` after each moment. */
  async run(check: () => void): Promise<void> {
    const { clock } = this.scene;
    for (;;) {
      const next = this.#agenda.toSorted((a, b) => a.at - b.at)[0];
      const at = Math.min(next?.at ?? Infinity, clock.nextAlarmAt, this.model.nextAt());
      if (at === Infinity) return;
      clock.advance(at - clock.time);
      this.model.turn(at);
      await this.#settle();
      check();
      if (next?.at !== at) continue;
      this.#agenda.splice(this.#agenda.indexOf(next), 1);
      next.happen();
      await this.#settle();
      check();
    }
  }

  /** What the model says came of all requests so far. */
  get expected(): string[] {
    return [
      ...this.model.claims.map(({ at, reason, request, upstream }) => line(request, at, upstream, reason)),
      ...this.model.unserved.map(({ at, request, why }) => line(request, at, why, null)),
    ];
  }

  /** Requests that wait although a paid entry is free which their waiting has opened for them. */
  get overdue(): readonly number[] {
    const now = this.scene.clock.time;
    const overdue = [...this.#live].filter(
      ({ candidates, tried, wait, waiter }) =>
        wait.result === null &&
        candidates.some(({ entry: { spill }, upstream }) => {
          if (spill === null || waiter.priority < spill.minPriority || tried.has(upstream)) return false;
          return (
            upstream.slots.free && upstream.restingMs(now) === 0 && waiter.waitedMs(now) >= spill.afterMs
          );
        }),
    );
    return overdue.map(({ model }) => model.number);
  }

  #happens(event: PlannedEvent): void {
    if (event.kind === 'comes') this.#comes(event);
    else if (event.kind === 'rests') this.#rests(event.upstream, event.ms);
    else this.#leaves(event.which);
  }

  #comes(plan: Coming): void {
    const candidates = this.#candidates[plan.model] as readonly Claimable[];
    const waiter = this.scene.waiter(this.#queues[plan.model] as ModelQueue, 'a', plan.priority);
    const model: ModelRequest = {
      number: ++this.#numbers,
      priority: plan.priority,
      entries: this.#entries[plan.model] as readonly ModelEntry[],
      queue: this.#rules[plan.model] as ModelQueueRules,
      tried: new Set(),
      waitedMs: 0,
      waitsSince: null,
      stoodInQueue: false,
    };
    const wait = this.scene.ask(waiter, candidates);
    this.model.asks(model);
    this.#live.add({ plan, model, waiter, candidates, tried: new Set(), wait, attempts: 0 });
  }

  #rests(which: number, ms: number): void {
    this.scene.rest(this.#upstreams[which % this.#upstreams.length] as SceneUpstream, ms);
    this.model.rests(this.#modelUpstreams[which % this.#upstreams.length] as ModelUpstream, ms);
  }

  #leaves(which: number): void {
    const waiting = [...this.#live].filter(({ wait }) => wait.result === null);
    const one = waiting[which % Math.max(1, waiting.length)];
    if (one === undefined) return;
    this.scene.dispatcher.leave(one.waiter);
    this.model.leaves(one.model);
  }

  /** Writes down whose wait is over; what was claimed ends after its time. */
  async #settle(): Promise<void> {
    await told();
    for (const one of this.#live) {
      const { result } = one.wait;
      if (result === null) continue;
      const { number } = one.model;
      const claim = claimOf(one.wait);
      this.#live.delete(one);
      if (claim === null) {
        if ('unserved' in result) this.real.push(line(number, this.scene.clock.time, result.unserved, null));
        continue;
      }
      const { lease } = claim;
      const reason = this.scene.reasons.get(lease) ?? null;
      this.real.push(line(number, lease.startedAt, lease.upstream.id, reason));
      const attempt = one.plan.attempts[one.attempts++ % one.plan.attempts.length];
      if (attempt === undefined) continue;
      const { fails, holdMs } = attempt;
      this.#agenda.push({
        at: lease.startedAt + holdMs,
        happen: () => {
          lease.release();
          if (fails) {
            one.tried.add(lease.upstream);
            one.wait = this.scene.ask(one.waiter, one.candidates, one.tried);
          }
          this.model.ends(one.model, this.#modelOf(lease.upstream), fails);
          if (fails) this.#live.add(one);
        },
      });
    }
  }

  #modelOf({ id }: Upstream): ModelUpstream {
    return this.#modelUpstreams.find((upstream) => upstream.id === id) as ModelUpstream;
  }
}

function line(request: number, at: number, what: string, reason: string | null): string {
  return `${request}: ${what}${reason === null ? '' : ` (${reason})`} at ${at}`;
}
