import { Injectable } from '@nestjs/common';
import type { Attempt } from '../contracts/exchange.js';
import { askForRest } from './continuation/continuation-request.js';
import type { CompiledTarget } from './compiled-target.js';
import { GatewayAttempt } from './gateway-attempt.js';
import type { GatewayExchange } from './gateway-exchange.js';
import { PluginGuard } from './plugin.guard.js';
import { Shaping } from './shaping.js';

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
    const { candidate, key } = target;
    return new GatewayAttempt(exchange, candidate.upstream.config, key?.id ?? null, number, body, probe);
  }

  /** Null where all stages were synchronous and are done. Throws, or its end rejects, with the answer for the client. */
  shape(attempt: Attempt, { onAttempt }: CompiledTarget): Shaping | null {
    if (onAttempt === null) return null;
    for (let i = 0; i < onAttempt.length; i++) {
      const { id, hooks } = onAttempt[i] as (typeof onAttempt)[number];
      let waiting: void | Promise<void>;
      try {
        waiting = hooks.onAttempt(attempt);
      } catch (error) {
        throw this.guard.refusal(attempt.exchange.id, id, 'onAttempt', error);
      }
      if (waiting !== undefined) return new Shaping(onAttempt, i, waiting, attempt, this.guard);
    }
    return null;
  }
}
