// What reaches the provider, as it comes: who sent it, and when.
import { setTimeout as sleep } from 'node:timers/promises';

/** Into an answer that takes 200 ms or more. */
const MIDDLE_MS = 50;

export class Arrivals {
  #listeners = new Set();
  bySender = {};

  constructor(provider) {
    provider.onBegin = (exchange) => {
      this.bySender[exchange.sender] = (this.bySender[exchange.sender] ?? 0) + 1;
      for (const listener of this.#listeners) listener(exchange);
    };
  }

  /** The first exchange that fits; null where none comes in time. */
  first(fits, withinMs) {
    return new Promise((resolve) => {
      const end = (exchange) => {
        clearTimeout(timer);
        this.#listeners.delete(listener);
        resolve(exchange);
      };
      const listener = (exchange) => fits(exchange) && end(exchange);
      const timer = setTimeout(end, withinMs, null);
      this.#listeners.add(listener);
    });
  }

  /** One that fits and runs at this moment: it has just begun, or, where it is to be `answering`, its answer is on the way. */
  async running(fits, answering, withinMs) {
    const until = performance.now() + withinMs;
    while (performance.now() < until) {
      const exchange = await this.first(
        (one) => fits(one) && (!answering || one.plan.kind === 'drip'),
        withinMs,
      );
      if (answering) await sleep(MIDDLE_MS);
      if (exchange !== null && exchange.end === null) return exchange;
    }
    return null;
  }

  /** Until the returned function is called, which gives the senders of what came. */
  watch() {
    const senders = new Set();
    const listener = ({ sender }) => senders.add(sender);
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
      return senders;
    };
  }
}
