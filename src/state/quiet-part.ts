import type { EnrolAnswer, RenewAnswer } from './shared-store.js';
import type { SharedPart } from './shared-state.js';
import type { Pool, PooledLease, StoreEvent } from './shared-types.js';

/** A part that holds no leases and goes on by itself while the store is gone. */
export abstract class QuietPart implements SharedPart {
  leases(): readonly PooledLease[] {
    return [];
  }

  pools(): readonly Pool[] {
    return [];
  }

  enrolling(): void {}

  renewed(_answer: RenewAnswer, _sentAt: number): void {}

  lost(): void {}

  alone(): void {}

  abstract joined(answer: EnrolAnswer): void;

  abstract happened(event: StoreEvent): void;
}
