import type { Clock } from '../../common/time/clock.js';
import { QuietPart } from '../../state/quiet-part.js';
import { ignoreUnavailable, type SharedState } from '../../state/shared-state.js';
import type { RestState, StoreEvent } from '../../state/shared-types.js';
import type { Backoff, BackoffPeers, BookedFailure } from '../backoff/backoff.js';
import type { Upstream, UpstreamPeers } from '../upstream.js';
import { restNameOf } from './rest-name.js';

/** Tells one streak to the other replicas. Asking nobody: the answer comes as news, like theirs. */
class Peers implements BackoffPeers {
  constructor(
    private readonly name: string,
    private readonly state: SharedState,
  ) {}

  failed(failure: BookedFailure): void {
    if (this.state.ok) this.state.store.failed({ name: this.name, ...failure }).catch(ignoreUnavailable);
  }

  succeeded(): void {
    if (this.state.ok) this.state.store.succeeded(this.name).catch(ignoreUnavailable);
  }
}

/**
 * Streaks and rests that all replicas have in common: each books in its own counters at once and tells the store, which
 * decides and tells everybody. So with models that a provider does not know. Without a store the own counters go on. Lives as long as the service.
 */
export class SharedRests extends QuietPart implements UpstreamPeers {
  readonly #counters = new Map<string, Backoff>();
  readonly #upstreams = new Map<string, Upstream>();
  /** By the fact that its model is not known there. */
  readonly #gone = new Map<string, Upstream>();

  constructor(
    private readonly state: SharedState,
    upstreams: Iterable<Upstream>,
    private readonly clock: Clock,
  ) {
    super();
    for (const upstream of upstreams) {
      const { backoff, config } = upstream;
      this.#upstreams.set(upstream.id, upstream);
      this.#gone.set(goneFact(upstream), upstream);
      upstream.peers = this;
      const name = restNameOf(config);
      if (name === null || backoff === null || this.#counters.has(name)) continue;
      this.#counters.set(name, backoff);
      backoff.peers = new Peers(name, state);
    }
  }

  joined(): void {
    this.state.store
      .rests([...this.#counters.keys()])
      .then((states) => states.forEach((state) => this.#resume(state)), ignoreUnavailable);
    const gone = [...this.#gone];
    this.state.store.held(gone.map(([fact]) => fact)).then((lefts) => {
      const now = this.clock.now();
      // What this one learnt while the store was away stays true.
      for (const [i, [, upstream]] of gone.entries())
        if ((lefts[i] ?? 0) > 0) upstream.heardGone(now, lefts[i] ?? 0);
    }, ignoreUnavailable);
  }

  gone(upstream: Upstream, ms: number): void {
    if (this.state.ok) this.state.store.hold(goneFact(upstream), ms).catch(ignoreUnavailable);
  }

  happened(event: StoreEvent): void {
    if (event.kind === 'held') this.#gone.get(event.fact)?.heardGone(this.clock.now(), event.leftMs);
    if (event.kind === 'told' && event.topic === 'probed') this.#probed(event.text);
    if (event.kind === 'rest') this.#counters.get(event.state.name)?.adopt(event.state, this.clock.now());
  }

  /** Another replica's probe permits trials, or does not any more. */
  #probed(news: string): void {
    const [id, alive, restNumber] = JSON.parse(news) as [string, boolean, number];
    this.#upstreams.get(id)?.recovery?.probed(alive, restNumber);
  }

  /** What failed here while the store was away is not forgotten for its sake. */
  #resume(state: RestState): void {
    const counter = this.#counters.get(state.name);
    if (counter === undefined) return;
    const now = this.clock.now();
    if (state.leftMs >= counter.restingMs(now) || state.streak > counter.streak) counter.adopt(state, now);
  }
}

function goneFact({ id }: Upstream): string {
  return `gone:${id}`;
}
