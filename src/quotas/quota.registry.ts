import { Inject, Injectable } from '@nestjs/common';
import type { WallClock } from '../common/time/clock.js';
import { ConfigStore } from '../config/config.store.js';
import type { KeyConfig, ModelConfig, ModelEntryConfig, QuotaConfig } from '../config/gateway-config.js';
import type { GateSource } from '../contracts/gate.js';
import { WALL_CLOCK } from '../contracts/ports.js';
import { type QuotaPlace, type QuotaScope, quotaKey } from './quota-place.js';
import { QuotaMeter } from './quota-meter.js';
import { QuotaSet } from './quota-set.js';
import { QuotaStore } from './quota.store.js';

/** A meter, and whose it is. */
export interface PlacedMeter extends QuotaPlace {
  readonly meter: QuotaMeter;
}

/**
 * Owns the meters of all quotas in the file, for the life of the process: one for each quota of each provider, key,
 * upstream, entry and consumer, whoever asks. Gives them out in sets.
 */
@Injectable()
export class QuotaRegistry implements GateSource {
  readonly #meters = new Map<string, PlacedMeter>();
  readonly #sets = new Map<string, QuotaSet>();

  constructor(
    config: ConfigStore,
    private readonly kept: QuotaStore,
    @Inject(WALL_CLOCK) private readonly wallClock: WallClock,
  ) {
    const { consumers, models, providers, upstreams } = config.current;
    for (const { id, keys, quota } of providers) {
      this.#metersOf('provider', [id], quota);
      for (const key of keys ?? []) this.#metersOf('key', [id, key.id], key.quota);
    }
    for (const { id, quota } of upstreams) this.#metersOf('upstream', [id], quota);
    for (const { id, quota } of consumers ?? []) this.#metersOf('consumer', [id], quota);
    for (const model of models)
      for (const entry of model.entries) this.#metersOf('entry', entryId(model, entry), entry.quota);
  }

  /** In the order of the file. */
  get meters(): Iterable<PlacedMeter> {
    return this.#meters.values();
  }

  /** Once, when the store has been read: before that, and so before any request, all meters stand at 0. */
  restore(): void {
    const nowMs = this.wallClock();
    for (const placed of this.#meters.values())
      placed.meter.restore(this.kept.usesOf(quotaKey(placed, placed.meter.quota)), nowMs);
  }

  /** What a request to this entry of a model counts against; null = nothing. The same set for the same entry. */
  gateOf(model: ModelConfig, entry: ModelEntryConfig): QuotaSet | null {
    const { upstream } = entry;
    const { provider } = upstream;
    return this.#setOf([
      ...this.#metersOf('provider', [provider.id], provider.quota),
      ...this.#metersOf('upstream', [upstream.id], upstream.quota),
      ...this.#metersOf('entry', entryId(model, entry), entry.quota),
    ]);
  }

  gateOfKey(provider: string, { id, quota }: KeyConfig): QuotaSet | null {
    return this.setOf('key', [provider, id], quota);
  }

  /** The quotas of one key or consumer; null = none. */
  setOf(scope: QuotaScope, id: readonly string[], quotas: readonly QuotaConfig[]): QuotaSet | null {
    return this.#setOf(this.#metersOf(scope, id, quotas));
  }

  #setOf(placed: readonly PlacedMeter[]): QuotaSet | null {
    if (placed.length === 0) return null;
    const key = placed.map((meter) => quotaKey(meter, meter.meter.quota)).join();
    let set = this.#sets.get(key);
    if (set === undefined) {
      set = new QuotaSet(
        placed.map(({ meter }) => meter),
        this.wallClock,
      );
      this.#sets.set(key, set);
    }
    return set;
  }

  #metersOf(scope: QuotaScope, id: readonly string[], quotas: readonly QuotaConfig[]): PlacedMeter[] {
    return quotas.map((quota) => {
      const key = quotaKey({ scope, id }, quota);
      let placed = this.#meters.get(key);
      if (placed === undefined) {
        placed = { scope, id, meter: new QuotaMeter(quota, this.kept.usesOf(key), this.wallClock()) };
        this.#meters.set(key, placed);
      }
      return placed;
    });
  }
}

/** An upstream that stands in several entries of a model has quotas of its own in each. */
function entryId(model: ModelConfig, entry: ModelEntryConfig): readonly string[] {
  const { id } = entry.upstream;
  const place = model.entries.filter(({ upstream }) => upstream === entry.upstream).indexOf(entry);
  return [model.name, place > 0 ? `${id}#${place + 1}` : id];
}
