import { Injectable } from '@nestjs/common';
import type { Attempt } from '../contracts/exchange.js';
import { askForRest } from './continuation/continuation-request.js';
import type { CompiledTarget } from './compiled-target.js';
import { GatewayAttempt } from './gateway-attempt.js';
import type { GatewayExchange } from './gateway-exchange.js';
import { PluginGuard } from './plugin.guard.js';

/** Makes an attempt's own copy of the body and leads it through the `onAttempt` stages. */
@Injectable()
export class AttemptShaper {
  constructor(private readonly guard: PluginGuard) {}

  make(exchange: GatewayExchange, target: CompiledTarget, number: number, probe = false): GatewayAttempt {
    // Each attempt starts from the client's bytes: what one upstream's patch did never reaches the next.
    const body = exchange.body.fork();
    body.setRaw('model', target.modelBytes);
    const { prefill } = target.candidate.upstream.config;
    if (exchange.relayed?.begun === true && prefill !== null)
      askForRest(body, exchange.relayed.text, prefill);
    return new GatewayAttempt(exchange, target.candidate.upstream.config, number, body, probe);
  }

  /** Null where all stages were synchronous and are done. Throws, or rejects, with the answer for the client. */
  shape(attempt: Attempt, target: CompiledTarget): Promise<void> | null {
    return target.onAttempt === null ? null : this.#from(0, attempt, target);
  }

  #from(first: number, attempt: Attempt, target: CompiledTarget): Promise<void> | null {
    const stages = target.onAttempt ?? [];
    for (let i = first; i < stages.length; i++) {
      const { id, hooks } = stages[i] as (typeof stages)[number];
      let waiting: void | Promise<void>;
      try {
        waiting = hooks.onAttempt(attempt);
      } catch (error) {
        throw this.guard.refusal(attempt.exchange.id, id, 'onAttempt', error);
      }
      if (waiting !== undefined) return this.#afterWait(waiting, i, id, attempt, target);
    }
    return null;
  }

  async #afterWait(
    waiting: Promise<void>,
    index: number,
    id: string,
    attempt: Attempt,
    target: CompiledTarget,
  ): Promise<void> {
    try {
      await waiting;
    } catch (error) {
      throw this.guard.refusal(attempt.exchange.id, id, 'onAttempt', error);
    }
    await this.#from(index + 1, attempt, target);
  }
}
