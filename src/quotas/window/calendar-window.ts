import type { Calendar, Span } from './calendar.js';
import type { QuotaWindow, Use } from './quota-window.js';

/** One counter that starts anew when the calendar turns. Holds the present window, and what the one before it counted. */
export class CalendarWindow implements QuotaWindow {
  #span: Span = { startMs: -Infinity, endMs: -Infinity };
  #used = 0;
  #before: { readonly startMs: number; readonly used: number } | null = null;
  /** Number of the present window; the place of what is booked in it. */
  #turn = 0;

  constructor(
    private readonly calendar: Calendar,
    uses: readonly Use[],
    nowMs: number,
  ) {
    this.#goTo(nowMs);
    for (const [atMs, amount] of uses) if (atMs >= this.#span.startMs) this.#used += amount;
  }

  used(nowMs: number): number {
    this.#goTo(nowMs);
    return this.#used;
  }

  book(amount: number, nowMs: number): number {
    this.#goTo(nowMs);
    this.#used += amount;
    return this.#turn;
  }

  takeBack(amount: number, place: number, nowMs: number): void {
    this.#goTo(nowMs);
    if (place === this.#turn) this.#used -= amount;
  }

  opensInMs(room: number, nowMs: number): number {
    this.#goTo(nowMs);
    return this.#used < room ? 0 : this.#span.endMs - nowMs;
  }

  turnsInMs(nowMs: number): number {
    this.#goTo(nowMs);
    return this.#span.endMs - nowMs;
  }

  uses(nowMs: number): Use[] {
    this.#goTo(nowMs);
    return this.#used === 0 ? [] : [[this.#span.startMs, this.#used]];
  }

  #goTo(nowMs: number): void {
    const { startMs, endMs } = this.#span;
    if (nowMs >= startMs && nowMs < endMs) return;
    const span = this.calendar(nowMs);
    if (nowMs >= endMs) {
      this.#before = { startMs, used: this.#used };
      this.#used = 0;
      this.#turn++;
    } else {
      // The clock was set back across a turn: what was used since really belongs to the window that is back again.
      if (this.#before?.startMs === span.startMs) this.#used += this.#before.used;
      this.#before = null;
    }
    this.#span = span;
  }
}
