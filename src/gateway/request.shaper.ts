import { Inject, Injectable } from '@nestjs/common';
import type { Clock } from '../common/time/clock.js';
import { CLOCK } from '../contracts/ports.js';
import type { Stage } from './compiled-target.js';
import type { GatewayExchange } from './gateway-exchange.js';
import { givenUpError, whenGivenUp } from './given-up.js';
import { PipelineCompiler } from './pipeline.compiler.js';
import { PluginGuard } from './plugin.guard.js';
import { type StageEnd, stageEnd } from './stage-wait.js';

/** Leads a request through the `onRequest` stages, once, before an upstream is chosen. Keeps nothing. */
@Injectable()
export class RequestShaper {
  constructor(
    @Inject(CLOCK) private readonly clock: Clock,
    private readonly pipelines: PipelineCompiler,
    private readonly guard: PluginGuard,
  ) {}

  /**
   * Null where there is no stage. Rejects with the answer that ends the request, also where it is given up meanwhile; at its
   * deadline it is merely done.
   */
  shape(exchange: GatewayExchange): Promise<void> | null {
    const { onRequest } = this.pipelines;
    return onRequest === null ? null : this.#through(onRequest, exchange);
  }

  async #through(stages: readonly Stage<'onRequest'>[], exchange: GatewayExchange): Promise<void> {
    for (const { id, hooks } of stages) {
      let end: StageEnd = 'done';
      try {
        const waiting = hooks.onRequest(exchange);
        if (waiting !== undefined) end = await stageEnd(waiting, exchange, exchange.deadlineAt, this.clock);
      } catch (error) {
        throw this.guard.refusal(exchange.id, id, 'onRequest', error);
      }
      if (end === 'done') continue;
      const { givenUp, model } = exchange;
      const why =
        givenUp === null ? `at the deadline of ${Math.round(model.deadlineMs)}ms` : whenGivenUp(givenUp);
      this.guard.abandoned(exchange.id, id, 'onRequest', why, givenUp === 'client_gone');
      if (givenUp !== null) throw givenUpError(givenUp);
      exchange.abandon();
      return;
    }
  }
}
