import { Injectable } from '@nestjs/common';
import type { GatewayExchange } from './gateway-exchange.js';

/**
 * The exchanges that run at this moment; what a shutdown ends when its patience is over. An array whose last member
 * takes the place of the one that leaves: nothing is hashed, nothing is searched.
 */
@Injectable()
export class RunningExchanges {
  readonly #running: GatewayExchange[] = [];

  get size(): number {
    return this.#running.length;
  }

  add(exchange: GatewayExchange): void {
    exchange.place = this.#running.length;
    this.#running.push(exchange);
  }

  delete(exchange: GatewayExchange): void {
    const last = this.#running.pop();
    if (last === undefined || last === exchange) return;
    last.place = exchange.place;
    this.#running[exchange.place] = last;
  }

  /** Ends what still runs: streams get the error event, what has not answered yet gets a 503. */
  giveUpAll(): void {
    for (const exchange of this.#running.slice()) exchange.giveUp('shutting_down');
  }
}
