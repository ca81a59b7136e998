/** An upstream, as the model of costs knows it. */
export interface ModelUpstream {
  readonly id: string;
  readonly limit: number;
  restsUntil: number;
  /** Moving mean of the time for which its slots were held; null before the first was given back. */
  meanMs: number | null;
  /** Since when each is held, the oldest first. */
  readonly held: { readonly by: number; readonly since: number }[];
}

export interface ModelEntry {
  readonly upstream: ModelUpstream;
  /** Null: an entry like any other. */
  readonly spill: { readonly afterMs: number; readonly minPriority: number } | null;
}

export interface ModelQueueRules {
  readonly size: number;
  readonly waitMs: number;
}

/** A request, from its arrival to its end. */
export interface ModelRequest {
  /** In order of arrival. */
  readonly number: number;
  readonly priority: number;
  readonly entries: readonly ModelEntry[];
  readonly queue: ModelQueueRules;
  readonly tried: Set<ModelUpstream>;
  /** In the waits that are over. */
  waitedMs: number;
  /** Null: it does not wait at this moment. */
  waitsSince: number | null;
  stoodInQueue: boolean;
}

/** Why a request was given to an entry with `spill_after`, and what the model thought of the entries before it. */
export interface ModelClaim {
  readonly request: number;
  readonly upstream: string;
  readonly reason: string | null;
  readonly at: number;
  readonly waitedMs: number;
  readonly estimateMs: number | null;
  readonly afterMs: number;
}

const NEWEST = 0.3;

/**
 * What requests with paid entries should do, in the plainest words and with no thought of speed: at every moment each who
 * waits is asked anew, in the order in which they are to be served. Knows nothing of lines, rooms, alarms.
 */
export class SpillModel {
  now = 0;
  readonly waiting: ModelRequest[] = [];
  readonly claims: ModelClaim[] = [];
  readonly unserved: { readonly request: number; readonly why: string; readonly at: number }[] = [];

  constructor(readonly upstreams: readonly ModelUpstream[]) {}

  /** The next time at which something may be due by the clock alone. */
  nextAt(): number {
    const times = this.upstreams.map(({ restsUntil }) => restsUntil);
    for (const request of this.waiting) {
      const bornAt = this.now - this.#waitedMs(request);
      times.push(bornAt + request.queue.waitMs);
      for (const { spill } of request.entries) if (spill !== null) times.push(bornAt + spill.afterMs);
    }
    return Math.min(...times.filter((time) => time > this.now));
  }

  /** Time has come to this moment. */
  turn(at: number): void {
    this.now = at;
    this.serve();
    for (const request of this.#inOrder())
      if (this.#waitedMs(request) >= request.queue.waitMs) this.#leave(request, 'queue_timeout');
  }

  asks(request: ModelRequest): void {
    if (this.#claimFor(request, false)) return this.serve();
    if (this.#opensInMs(request) > request.queue.waitMs - request.waitedMs)
      return this.#refuse(request, 'closed');
    if (request.waitedMs >= request.queue.waitMs) return this.#refuse(request, 'queue_timeout');
    const inQueue = this.waiting.filter(({ queue }) => queue === request.queue);
    if (!request.stoodInQueue && inQueue.length >= request.queue.size) {
      if (this.#claimFor(request, true)) return this.serve();
      const lowest = Math.min(...inQueue.map(({ priority }) => priority));
      const newest = inQueue.filter(({ priority }) => priority === lowest).at(-1);
      if (lowest >= request.priority || newest === undefined) return this.#refuse(request, 'queue_full');
      this.#leave(newest, 'queue_full');
    }
    request.stoodInQueue = true;
    request.waitsSince = this.now;
    this.waiting.push(request);
    this.waiting.sort((a, b) => a.number - b.number);
    this.serve();
  }

  /** The exchange of this request on this upstream is over, well or badly. */
  ends(request: ModelRequest, upstream: ModelUpstream, failed: boolean): void {
    const index = upstream.held.findIndex(({ by }) => by === request.number);
    const [slot] = upstream.held.splice(index, 1);
    const heldMs = this.now - (slot?.since ?? NaN);
    upstream.meanMs =
      upstream.meanMs === null ? heldMs : upstream.meanMs + NEWEST * (heldMs - upstream.meanMs);
    this.serve();
    if (!failed) return;
    request.tried.add(upstream);
    this.asks(request);
  }

  rests(upstream: ModelUpstream, ms: number): void {
    upstream.restsUntil = this.now + ms;
    this.serve();
    for (const request of this.#inOrder()) {
      const leftMs = request.queue.waitMs - this.#waitedMs(request);
      if (this.#opensInMs(request) > leftMs) this.#leave(request, 'closed');
    }
    this.serve();
  }

  /** The client has gone. */
  leaves(request: ModelRequest): void {
    this.#leave(request, 'left');
    this.serve();
  }

  /** Whoever is first may take something; then all are asked again. */
  serve(): void {
    while (this.#inOrder().some((request) => this.#claimFor(request, false)));
  }

  /** Whether the entry may be used by this request now, and why. */
  mayUse(request: ModelRequest, entry: ModelEntry, full: boolean): { reason: string | null } | null {
    const { spill } = entry;
    if (request.tried.has(entry.upstream) || this.#rests(entry.upstream)) return null;
    if (spill === null) return { reason: null };
    if (request.priority < spill.minPriority) return null;
    if (this.#left(request, entry).length === 0) return { reason: 'unavailable' };
    if (full) return { reason: 'full' };
    if (this.#waitedMs(request) >= spill.afterMs) return { reason: 'waited' };
    const estimateMs = this.estimateMs(request, entry);
    return estimateMs !== null && estimateMs > spill.afterMs ? { reason: 'estimate' } : null;
  }

  /** How long the entries before this one would take; null where nothing is known of one of them. */
  estimateMs(request: ModelRequest, entry: ModelEntry): number | null {
    const estimates = this.#left(request, entry).map(({ upstream }) => this.#estimateOf(request, upstream));
    const known = estimates.filter((estimate) => estimate !== null);
    return known.length < estimates.length ? null : Math.min(...known);
  }

  isFree({ held, limit }: ModelUpstream): boolean {
    return held.length < limit;
  }

  /** max(0, mean − time the oldest has run) + mean × (position − 1) / limit. */
  #estimateOf(request: ModelRequest, upstream: ModelUpstream): number | null {
    const { held, limit, meanMs } = upstream;
    if (meanMs === null) return null;
    const [oldest] = held;
    const leftMs = oldest === undefined ? 0 : Math.max(0, meanMs - (this.now - oldest.since));
    const position = 1 + this.waiting.filter((other) => this.#isBefore(other, request, upstream)).length;
    return leftMs + (meanMs * (position - 1)) / limit;
  }

  #isBefore(other: ModelRequest, request: ModelRequest, upstream: ModelUpstream): boolean {
    if (other === request || !this.#usable(other).some((entry) => entry.upstream === upstream)) return false;
    if (other.priority !== request.priority) return other.priority > request.priority;
    return other.number < request.number;
  }

  /** Entries before this one that are neither failed, nor resting, nor closed to this priority. */
  #left(request: ModelRequest, entry: ModelEntry): readonly ModelEntry[] {
    const before = request.entries.slice(0, request.entries.indexOf(entry));
    const usable = this.#usable(request);
    return before.filter((one) => usable.includes(one) && !this.#rests(one.upstream));
  }

  #usable({ entries, priority, tried }: ModelRequest): readonly ModelEntry[] {
    return entries.filter(
      ({ spill, upstream }) => !tried.has(upstream) && (spill === null || priority >= spill.minPriority),
    );
  }

  #claimFor(request: ModelRequest, full: boolean): boolean {
    for (const entry of request.entries) {
      const may = this.mayUse(request, entry, full);
      if (may === null || !this.isFree(entry.upstream)) continue;
      this.claims.push({
        request: request.number,
        upstream: entry.upstream.id,
        reason: may.reason,
        at: this.now,
        waitedMs: this.#waitedMs(request),
        estimateMs: entry.spill === null ? null : this.estimateMs(request, entry),
        afterMs: entry.spill?.afterMs ?? 0,
      });
      this.#stopWaiting(request);
      entry.upstream.held.push({ by: request.number, since: this.now });
      return true;
    }
    return false;
  }

  #inOrder(): ModelRequest[] {
    return this.waiting.toSorted((a, b) => b.priority - a.priority || a.number - b.number);
  }

  #opensInMs(request: ModelRequest): number {
    const opens = this.#usable(request).map(({ upstream }) => Math.max(0, upstream.restsUntil - this.now));
    return Math.min(Infinity, ...opens);
  }

  #rests({ restsUntil }: ModelUpstream): boolean {
    return restsUntil > this.now;
  }

  #waitedMs({ waitedMs, waitsSince }: ModelRequest): number {
    return waitedMs + (waitsSince === null ? 0 : this.now - waitsSince);
  }

  #leave(request: ModelRequest, why: string): void {
    this.#stopWaiting(request);
    this.#refuse(request, why);
  }

  #stopWaiting(request: ModelRequest): void {
    request.waitedMs = this.#waitedMs(request);
    request.waitsSince = null;
    const index = this.waiting.indexOf(request);
    if (index >= 0) this.waiting.splice(index, 1);
  }

  #refuse({ number }: ModelRequest, why: string): void {
    this.unserved.push({ request: number, why, at: this.now });
  }
}
