import { Injectable } from '@nestjs/common';
import type { ModelConfig, UpstreamConfig } from '../config/gateway-config.js';
import type { Attempt } from '../contracts/exchange.js';
import { type ExchangeInterceptor, RegisterInterceptor, type Target } from '../contracts/interceptor.js';
import { applyPatch, compilePatch, type PatchPlan } from './patch-plan.js';

/** Merges the patches of provider, upstream and model, in this order, into each attempt's body. */
@Injectable()
@RegisterInterceptor({ id: 'patches', order: 150 })
export class PatchInterceptor implements ExchangeInterceptor {
  readonly #plans = new WeakMap<ModelConfig, Map<UpstreamConfig, PatchPlan | null>>();

  appliesTo(target: Target): boolean {
    // Of a form nothing is understood but its model.
    if (target.operation === 'transcription' || target.operation === 'translation') return false;
    return this.#plan(target.model, target.upstream) !== null;
  }

  onAttempt(attempt: Attempt): void {
    const plan = this.#plan(attempt.exchange.model, attempt.upstream);
    if (plan !== null) applyPatch(attempt.body, plan);
  }

  #plan(model: ModelConfig, upstream: UpstreamConfig): PatchPlan | null {
    let plans = this.#plans.get(model);
    if (plans === undefined) this.#plans.set(model, (plans = new Map()));
    let plan = plans.get(upstream);
    if (plan === undefined) {
      plan = compilePatch([upstream.provider.patch, upstream.patch, model.patch]);
      plans.set(upstream, plan);
    }
    return plan;
  }
}
