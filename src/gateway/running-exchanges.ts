import { Injectable } from '@nestjs/common';
import type { GatewayExchange } from './gateway-exchange.js';

/** The exchanges that run at this moment; what a shutdown ends when its patience is over. */
@Injectable()
export class RunningExchanges {
  readonly #running = new Set<GatewayExchange>();

  get size(): number {
    return this.#running.size;
  }

  add(exchange: GatewayExchange): void {
    this.#running.add(exchange);
  }

  delete(exchange: GatewayExchange): void {
    this.#running.delete(exchange);
  }

  /** Ends what still runs: streams get the error event, what has not answered yet gets a 503. */
  giveUpAll(): void {
    for (const exchange of this.#running) exchange.giveUp('shutting_down');
  }
}
