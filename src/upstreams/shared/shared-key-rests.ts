import type { Clock } from '../../common/time/clock.js';
import { QuietPart } from '../../state/quiet-part.js';
import { ignoreUnavailable, type SharedState } from '../../state/shared-state.js';
import type { StoreEvent } from '../../state/shared-types.js';
import type { KeyPeers, PoolKey } from '../keys/pool-key.js';

interface Rest {
  readonly key: PoolKey;
  readonly upstream: string | null;
}

/** Rests of keys, known to all replicas: a key that one of them has exhausted is left alone by the others. */
export class SharedKeyRests extends QuietPart implements KeyPeers {
  readonly #rests = new Map<string, Rest>();
  readonly #names = new Map<PoolKey, string>();

  constructor(
    private readonly state: SharedState,
    pools: ReadonlyMap<string, readonly PoolKey[]>,
    /** Ids of the upstreams of a provider. */
    upstreamsOf: (provider: string) => readonly string[],
    private readonly clock: Clock,
  ) {
    super();
    for (const [provider, keys] of pools) {
      for (const key of keys) {
        const name = `key:${JSON.stringify([provider, key.id])}`;
        this.#names.set(key, name);
        for (const upstream of [null, ...upstreamsOf(provider)])
          this.#rests.set(factOf(name, upstream), { key, upstream });
        key.peers = this;
      }
    }
  }

  rests(key: PoolKey, upstream: string | null, ms: number): void {
    this.#hold(key, upstream, ms);
  }

  works(key: PoolKey, upstream: string): void {
    this.#hold(key, upstream, 0);
  }

  joined(): void {
    const rests = [...this.#rests];
    this.state.store.held(rests.map(([fact]) => fact)).then((lefts) => {
      const now = this.clock.now();
      for (const [i, [, { key, upstream }]] of rests.entries()) {
        const leftMs = lefts[i] ?? 0;
        // What this one learnt while the store was away stays true.
        if (leftMs > 0) key.adopt(upstream, now, leftMs);
      }
    }, ignoreUnavailable);
  }

  happened(event: StoreEvent): void {
    if (event.kind !== 'held') return;
    const rest = this.#rests.get(event.fact);
    rest?.key.adopt(rest.upstream, this.clock.now(), event.leftMs);
  }

  #hold(key: PoolKey, upstream: string | null, ms: number): void {
    const name = this.#names.get(key);
    if (name === undefined || !this.state.ok) return;
    this.state.store.hold(factOf(name, upstream), ms).catch(ignoreUnavailable);
  }
}

function factOf(key: string, upstream: string | null): string {
  return upstream === null ? key : `${key}@${upstream}`;
}
