import type { Clock } from '../../common/time/clock.js';
import type { SetAlarm } from '../concurrency/alarm.js';
import type { Asked } from './shared-places.js';

/** Nobody need wake a replica for it to look, at the latest. */
const LOOK_MS = 1000;

/**
 * Gets something from the store for those who wait for it in one line of this replica, while somebody does: asks once something
 * may have become free, and is noted there meanwhile, to be woken. One question at a time. Lives with the line.
 */
export abstract class Pursuit {
  #asking = false;
  #again = false;
  /** Whether the store may still hold a note, or a place, for this replica. */
  #noted = false;
  #cancelAlarm: (() => void) | null = null;
  #alarmAt = Infinity;

  constructor(
    private readonly clock: Clock,
    private readonly setAlarm: SetAlarm,
  ) {}

  /** Whether anybody waits. */
  protected abstract get waiting(): boolean;

  /** Asks the store, and notes that this replica waits. Null: there is nothing to ask for now. */
  protected abstract ask(): Promise<Asked> | null;

  /** Takes the note back. */
  protected abstract forget(): void;

  /** Somebody waits, or something may be free. */
  pursue(): void {
    if (this.#asking) {
      this.#again = true;
      return;
    }
    if (!this.waiting) {
      this.#rest();
      return;
    }
    this.#asking = true;
    this.#run()
      .finally(() => {
        this.#asking = false;
      })
      .then(
        () => {
          if (!this.waiting) this.#rest();
        },
        // Ours, and nothing the store did: told by the process as any error nobody expects; the alarm looks again.
        (error: unknown) => {
          this.#wakeIn(LOOK_MS);
          throw error;
        },
      );
  }

  /** A place is kept for this replica, from `inMs` on. */
  woken(inMs: number): void {
    this.#noted = true;
    if (inMs > 0 && this.waiting) this.#wakeIn(inMs);
    else this.pursue();
  }

  async #run(): Promise<void> {
    while (this.waiting) {
      this.#again = false;
      const asking = this.ask();
      if (asking === null) {
        this.#wakeIn(LOOK_MS);
        return;
      }
      this.#noted = true;
      const { againMs, got } = await asking;
      if (got === 'nothing') {
        // At once what was missed while it was asked, else when something lapses.
        if (this.#again) continue;
        this.#wakeIn(Math.min(LOOK_MS, againMs ?? LOOK_MS));
        return;
      }
      if (got === 'given back') {
        this.#wakeIn(LOOK_MS);
        return;
      }
    }
  }

  /** Nobody waits any more. */
  #rest(): void {
    this.#cancelAlarm?.();
    this.#cancelAlarm = null;
    this.#alarmAt = Infinity;
    if (!this.#noted) return;
    this.#noted = false;
    this.forget();
  }

  #wakeIn(ms: number): void {
    const at = this.clock.now() + Math.max(1, ms);
    if (this.#alarmAt <= at) return;
    this.#cancelAlarm?.();
    this.#alarmAt = at;
    this.#cancelAlarm = this.setAlarm(Math.max(1, ms), () => {
      this.#cancelAlarm = null;
      this.#alarmAt = Infinity;
      this.pursue();
    });
  }
}
