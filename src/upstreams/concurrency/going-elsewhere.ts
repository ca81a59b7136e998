import type { SlotRoom } from './slot-room.js';
import type { Waiter } from './waiter.js';
import type { Ticket } from './waiting-line.js';

/**
 * Who of some is the next to get something in these rooms. Of each slot the line decides that waits for it, whatever made it
 * eligible for them: an estimate may grow in several rooms in one step. `goesTo`: where somebody would get something now, or
 * null; who gets nothing now is taken off the list, since others being served opens nothing for him.
 */
export function nextToGo(
  rooms: Iterable<SlotRoom>,
  among: Set<Waiter>,
  goesTo: (waiter: Waiter) => SlotRoom | null,
): Waiter | null {
  let next: Ticket<Waiter> | null = null;
  for (const room of rooms) {
    if (!room.free) continue;
    for (const ticket of room.line.inOrder()) {
      const { waiter } = ticket;
      if (!among.has(waiter)) continue;
      const goal = goesTo(waiter);
      if (goal === null) among.delete(waiter);
      if (goal !== room) continue;
      if (next === null || isBefore(ticket, next)) next = ticket;
      break;
    }
  }
  return next?.waiter ?? null;
}

/** Between two lines: turns are counted for each by itself and say nothing about the other, arrival does. */
function isBefore(one: Ticket<Waiter>, other: Ticket<Waiter>): boolean {
  return one.priority === other.priority
    ? one.waiter.order < other.waiter.order
    : one.priority > other.priority;
}
