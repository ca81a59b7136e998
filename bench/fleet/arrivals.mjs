// What reaches the provider, as it comes: who sent it, and when.

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
