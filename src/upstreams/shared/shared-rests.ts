import type { Clock } from '../../common/time/clock.js';
import { ignoreUnavailable, type SharedPart, type SharedState } from '../../state/shared-state.js';
import type { RestState, StoreEvent } from '../../state/shared-types.js';
import type { Backoff, BackoffPeers, BookedFailure } from '../backoff/backoff.js';
import type { Upstream } from '../upstream.js';
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
 * decides and tells everybody. Without a store the own counters go on. Lives as long as the service.
 */
export class SharedRests implements SharedPart {
  readonly #counters = new Map<string, Backoff>();

  constructor(
    private readonly state: SharedState,
    upstreams: Iterable<Upstream>,
    private readonly clock: Clock,
  ) {
    for (const { backoff, config } of upstreams) {
      const name = restNameOf(config);
      if (name === null || backoff === null || this.#counters.has(name)) continue;
      this.#counters.set(name, backoff);
      backoff.peers = new Peers(name, state);
    }
  }

  leases(): [] {
    return [];
  }

  pools(): [] {
    return [];
  }

  enrolling(): void {}

  joined(): void {
    this.state.store
      .rests([...this.#counters.keys()])
      .then((states) => states.forEach((state) => this.#resume(state)), ignoreUnavailable);
  }

  renewed(): void {}

  lost(): void {}

  alone(): void {}

  happened(event: StoreEvent): void {
    if (event.kind === 'rest') this.#counters.get(event.state.name)?.adopt(event.state, this.clock.now());
  }

  /** What failed here while the store was away is not forgotten for its sake. */
  #resume(state: RestState): void {
    const counter = this.#counters.get(state.name);
    if (counter === undefined) return;
    const now = this.clock.now();
    if (state.leftMs >= counter.restingMs(now) || state.streak > counter.streak) counter.adopt(state, now);
  }
}
