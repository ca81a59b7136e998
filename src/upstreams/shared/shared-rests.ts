import type { Clock } from '../../common/time/clock.js';
import { QuietPart } from '../../state/quiet-part.js';
import { ignoreUnavailable, type SharedState } from '../../state/shared-state.js';
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
export class SharedRests extends QuietPart {
  readonly #counters = new Map<string, Backoff>();
  readonly #upstreams = new Map<string, Upstream>();

  constructor(
    private readonly state: SharedState,
    upstreams: Iterable<Upstream>,
    private readonly clock: Clock,
  ) {
    super();
    for (const upstream of upstreams) {
      const { backoff, config } = upstream;
      this.#upstreams.set(upstream.id, upstream);
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
  }

  happened(event: StoreEvent): void {
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
