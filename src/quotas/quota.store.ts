import { Inject, Injectable } from '@nestjs/common';
import type { WallClock } from '../common/time/clock.js';
import { ConfigStore } from '../config/config.store.js';
import { WALL_CLOCK } from '../contracts/ports.js';
import { GatewayLog } from '../observability/log/gateway-log.js';
import { StateFile } from '../state/state-file.js';
import type { Use } from './window/quota-window.js';

const VERSION = 1;
/** What no quota of the file counts any more is kept for a while: a quota may be taken out and put back. */
const KEPT_MS = 62 * 86_400_000;

/** What was used, by the key of the quota. */
export type KeptUses = ReadonlyMap<string, readonly Use[]>;

/** Keeps what was used in the state file, where the configuration names one; else a restart forgets it. */
@Injectable()
export class QuotaStore {
  readonly #file: StateFile | null;
  #kept: KeptUses = new Map<string, readonly Use[]>();

  constructor(
    config: ConfigStore,
    private readonly log: GatewayLog,
    @Inject(WALL_CLOCK) private readonly wallClock: WallClock,
  ) {
    const { file } = config.current.state;
    this.#file = file === null ? null : new StateFile(file);
  }

  get enabled(): boolean {
    return this.#file !== null;
  }

  /** Once, at start. @throws StateFileError where the file exists and cannot be read */
  load(): void {
    if (this.#file !== null) this.#kept = this.#load(this.#file);
  }

  /** As it was when the process started. */
  usesOf(key: string): readonly Use[] {
    return this.#kept.get(key) ?? [];
  }

  /** @throws StateFileError */
  async save(uses: KeptUses): Promise<void> {
    const oldestMs = this.wallClock() - KEPT_MS;
    const others = [...this.#kept].filter(
      ([key, list]) => !uses.has(key) && list.some(([atMs]) => atMs > oldestMs),
    );
    await this.#file?.save({ version: VERSION, quotas: Object.fromEntries([...others, ...uses]) });
  }

  #load(file: StateFile): KeptUses {
    const loaded = file.load();
    if (loaded.kind === 'absent') return new Map();
    const uses = loaded.kind === 'loaded' ? readUses(loaded.value) : null;
    if (uses !== null) return uses;
    const keptAs = loaded.kind === 'corrupt' ? loaded.keptAs : file.setAside();
    this.log.warn(
      `state: ${file.path} is no state file of this version; it is kept as ${keptAs}, and all quotas start at 0`,
    );
    return new Map();
  }
}

function readUses(value: unknown): KeptUses | null {
  const { version, quotas } = (value ?? {}) as Record<string, unknown>;
  if (version !== VERSION || typeof quotas !== 'object' || quotas === null) return null;
  const uses = new Map<string, readonly Use[]>();
  for (const [key, list] of Object.entries(quotas)) {
    if (!Array.isArray(list) || !list.every(isUse)) return null;
    uses.set(key, list);
  }
  return uses;
}

function isUse(value: unknown): value is Use {
  return Array.isArray(value) && value.length === 2 && value.every((part) => Number.isFinite(part));
}
