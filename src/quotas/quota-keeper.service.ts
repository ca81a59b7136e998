import { Inject, Injectable, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { GatewayLog } from '../observability/log/gateway-log.js';
import { QuotaMetrics } from '../observability/metrics/quota.metrics.js';
import type { WallClock } from '../common/time/clock.js';
import { WALL_CLOCK } from '../contracts/ports.js';
import { StateFileError } from '../state/state-file.js';
import { quotaKey } from './quota-place.js';
import { QuotaRegistry } from './quota.registry.js';
import { QuotaStore } from './quota.store.js';

const SAVE_INTERVAL_MS = 5_000;

/** Shows the meters to the scrapes, and saves them: at start, every 5 s where something changed, and at the end. */
@Injectable()
export class QuotaKeeperService implements OnModuleInit, OnApplicationShutdown {
  #timer: NodeJS.Timeout | null = null;
  #saving: Promise<void> | null = null;
  #savedVersion = -1;
  #failing = false;

  constructor(
    private readonly registry: QuotaRegistry,
    private readonly store: QuotaStore,
    private readonly metrics: QuotaMetrics,
    private readonly log: GatewayLog,
    @Inject(WALL_CLOCK) private readonly wallClock: WallClock,
  ) {}

  /** @throws StateFileError where the file cannot be read or written: better now than when something is lost. */
  async onModuleInit(): Promise<void> {
    this.metrics.remaining = () => this.#states();
    if (!this.store.enabled) return;
    // Trap: not in a constructor, whose error the framework prints with its stack.
    this.store.load();
    this.registry.restore();
    await this.#write();
    this.#timer = setInterval(() => this.tick(), SAVE_INTERVAL_MS);
    this.#timer.unref();
  }

  async onApplicationShutdown(): Promise<void> {
    if (this.#timer !== null) clearInterval(this.#timer);
    if (!this.store.enabled) return;
    await this.#saving;
    if (this.#version() !== this.#savedVersion) await this.#save();
  }

  /** Never twice at a time: a slow disk delays the next turn. */
  tick(): void {
    if (this.#saving !== null || this.#version() === this.#savedVersion) return;
    this.#saving = this.#save().finally(() => (this.#saving = null));
  }

  /** Never rejects; what could not be saved is tried again. */
  async #save(): Promise<void> {
    try {
      await this.#write();
      if (this.#failing) this.log.warn('state: the counters of quotas are saved again');
      this.#failing = false;
    } catch (error) {
      if (!(error instanceof StateFileError)) this.log.unexpected('', 'the saving of the state', error);
      else if (!this.#failing)
        this.log.warn(`state: ${error.message}; a restart now would forget what was used`);
      this.#failing = true;
    }
  }

  async #write(): Promise<void> {
    const version = this.#version();
    const nowMs = this.wallClock();
    const meters = [...this.registry.meters];
    await this.store.save(
      new Map(meters.map((placed) => [quotaKey(placed, placed.meter.quota), placed.meter.uses(nowMs)])),
    );
    this.#savedVersion = version;
  }

  /** Grows with each change of any meter. */
  #version(): number {
    let version = 0;
    for (const { meter } of this.registry.meters) version += meter.version;
    return version;
  }

  *#states(): Generator<{ scope: string; id: string; unit: string; per: string; remaining: number }> {
    const nowMs = this.wallClock();
    for (const { scope, id, meter } of this.registry.meters) {
      const { per, unit } = meter.quota;
      yield { scope, id: id.join('/'), unit, per: per.text, remaining: meter.remaining(nowMs) };
    }
  }
}
