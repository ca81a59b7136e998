import { Gauge, type Registry } from 'prom-client';

/** What the gauges of one key read at scrape time. */
export interface KeyState {
  readonly provider: string;
  /** Its id, never the key. */
  readonly key: string;
  /** By upstream; '' = for all upstreams of the provider. */
  readonly restingSeconds: ReadonlyMap<string, number>;
  /** Null where it does not expire. */
  readonly expiresInSeconds: number | null;
}

/** The gauges of key pools. One instance for a registry, as long as the service lives. */
export class KeyMetrics {
  #states: () => Iterable<KeyState> = () => [];

  constructor(registry: Registry) {
    const states = () => this.#states();
    const registers = [registry];
    new Gauge({
      name: 'llm_proxy_key_resting_seconds',
      help: 'Rest of a key that is left, at one upstream or (upstream="") at all; 0 = it can be used.',
      labelNames: ['provider', 'key', 'upstream'],
      registers,
      collect() {
        for (const { provider, key, restingSeconds } of states()) {
          for (const [upstream, seconds] of restingSeconds) this.set({ provider, key, upstream }, seconds);
        }
      },
    });
    new Gauge({
      name: 'llm_proxy_key_expires_seconds',
      help: 'Time until a key expires; 0 = it has.',
      labelNames: ['provider', 'key'],
      registers,
      collect() {
        for (const { provider, key, expiresInSeconds } of states()) {
          if (expiresInSeconds !== null) this.set({ provider, key }, expiresInSeconds);
        }
      },
    });
  }

  /** Where the gauges come from; asked at each scrape. */
  set states(source: () => Iterable<KeyState>) {
    this.#states = source;
  }
}
