import type { Clock, WallClock } from '../../common/time/clock.js';
import type { ProviderConfig } from '../../config/gateway-config.js';
import type { Gate, SkipReason } from '../../contracts/gate.js';
import type { PoolKey } from './pool-key.js';

/**
 * A provider's pool as one upstream sees it: which key is next, and whether there is one. Owns the turn of the keys at
 * this upstream; the keys and their rests are shared by all upstreams of the provider. Lives as long as the upstream.
 */
export class UpstreamKeys implements Gate {
  #next = 0;
  readonly #inTurns: boolean;

  constructor(
    readonly upstream: string,
    readonly keys: readonly PoolKey[],
    order: ProviderConfig['keyOrder'],
    private readonly clock: Clock,
    private readonly wallClock: WallClock,
  ) {
    this.#inTurns = order === 'round_robin';
  }

  /** Several: the key belongs to what is told about an attempt. */
  get several(): boolean {
    return this.keys.length > 1;
  }

  /** Of a closed pool: `quota` where nothing but quotas keeps it closed. */
  get reason(): SkipReason {
    const alive = this.keys.filter((key) => !key.dead(this.wallClock));
    if (alive.length === 0) return 'no_key';
    return alive.every(({ gate }) => gate !== null && gate.closedMs() > 0) ? 'quota' : 'cooling';
  }

  /** 0 = a key can be used now; else the time until the first one can; Infinity = none ever. */
  closedMs(): number {
    const now = this.clock.now();
    let soonestMs = Infinity;
    for (const key of this.keys) {
      if (key.dead(this.wallClock)) continue;
      const closedMs = key.closedMs(this.upstream, now);
      if (closedMs === 0) return 0;
      if (closedMs < soonestMs) soonestMs = closedMs;
    }
    return soonestMs;
  }

  /** The key whose turn it is, of those that can be used now and were not tried yet. Null = none. */
  pick(tried: ReadonlySet<PoolKey> | null): PoolKey | null {
    const { keys } = this;
    const now = this.clock.now();
    const first = this.#inTurns ? this.#next : 0;
    for (let i = 0; i < keys.length; i++) {
      const at = (first + i) % keys.length;
      const key = keys[at] as PoolKey;
      if (tried?.has(key) || key.dead(this.wallClock) || key.closedMs(this.upstream, now) > 0) continue;
      this.#next = (at + 1) % keys.length;
      return key;
    }
    return null;
  }

  /** The key of this id where it can be used now; nobody's turn is taken. */
  named(id: string): PoolKey | null {
    const key = this.keys.find((one) => one.id === id);
    if (key === undefined || key.dead(this.wallClock)) return null;
    return key.restingMs(this.upstream, this.clock.now()) > 0 ? null : key;
  }

  /** A key that can be used now, without taking its turn: for probes. */
  peek(): PoolKey | null {
    const next = this.#next;
    const key = this.pick(null);
    this.#next = next;
    return key;
  }
}
