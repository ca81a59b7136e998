import type { Upstream } from '../upstream.js';
import { type Claimable, isClosed } from './claimable.js';
import type { SlotRooms } from './slot-rooms.js';

/** Timers are not exact: the wait for a pause must not end before the pause. */
const SLACK_MS = 20;

/**
 * How long a request that failed waits for the pause of its own group to end, where another candidate of that group is
 * left and nothing but the pause keeps it; 0 = there is no such candidate.
 */
export function settlesWithin(
  rooms: SlotRooms,
  candidates: readonly Claimable[],
  tried: ReadonlySet<Upstream>,
  now: number,
): number {
  const failedIn = new Set([...tried].map((upstream) => rooms.seatOf(upstream)?.room));
  let soonestMs = 0;
  for (const candidate of candidates) {
    const { upstream } = candidate;
    const seat = rooms.seatOf(upstream);
    if (seat === undefined || seat.room.group === null) continue;
    if (tried.has(upstream) || !failedIn.has(seat.room) || isClosed(candidate, now)) continue;
    const until = seat.settlingUntil;
    if (until === null || until <= now) continue;
    soonestMs = soonestMs === 0 ? until - now : Math.min(soonestMs, until - now);
  }
  return soonestMs === 0 ? 0 : soonestMs + SLACK_MS;
}
