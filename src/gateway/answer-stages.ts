import { Injectable } from '@nestjs/common';
import type { Attempt } from '../contracts/exchange.js';
import type { StreamObserver, StreamTransform } from '../contracts/stream.js';
import type { CompiledTarget } from './compiled-target.js';
import type { GatewayAttempt } from './gateway-attempt.js';
import { GuardedObserver } from './guarded-observer.js';
import { GuardedTransform } from './guarded-transform.js';
import { observerOf, transformOf } from './plugin-returns.js';
import { PluginGuard } from './plugin.guard.js';
import { StreamPipeline } from './stream-pipeline.js';
import type { UsageObserver } from './usage.observer.js';
import { UsageTransform } from './usage.transform.js';

const NO_TRANSFORMS: readonly StreamTransform[] = [];

/** Opens the `onResponse` and `observe` stages for one answer. */
@Injectable()
export class AnswerStages {
  constructor(private readonly guard: PluginGuard) {}

  /**
   * `last` is a stage of the gateway behind all others. Throws the answer for the client where a stage that may change the
   * answer cannot be opened.
   */
  open(
    target: CompiledTarget,
    attempt: GatewayAttempt,
    usage: UsageObserver,
    last: StreamTransform | null,
    failures: StreamObserver | null = null,
  ): StreamPipeline {
    const watchers = failures === null ? [usage] : [usage, failures];
    let transforms = target.onResponse === null ? NO_TRANSFORMS : this.#transforms(target, attempt);
    if (attempt.quota?.withholdsUsage === true) transforms = [...transforms, new UsageTransform(usage)];
    if (last !== null) transforms = [...transforms, last];
    if (target.observe === null) return new StreamPipeline(transforms, watchers);
    return new StreamPipeline(transforms, [...watchers, ...this.#observers(target, attempt)], (error) =>
      this.guard.note(attempt.exchange.id, 'usage', 'observe', error),
    );
  }

  #transforms(target: CompiledTarget, attempt: Attempt): StreamTransform[] {
    const transforms: StreamTransform[] = [];
    for (const { id, hooks } of target.onResponse ?? []) {
      try {
        const transform = transformOf(hooks.onResponse(attempt.exchange, attempt));
        if (transform === null) continue;
        const note = (error: unknown) => this.guard.note(attempt.exchange.id, id, 'onResponse', error);
        transforms.push(new GuardedTransform(transform, note));
      } catch (error) {
        throw this.guard.refusal(attempt.exchange.id, id, 'onResponse', error);
      }
    }
    return transforms;
  }

  /** One that cannot be opened is left out. */
  #observers(target: CompiledTarget, attempt: Attempt): StreamObserver[] {
    const observers: StreamObserver[] = [];
    for (const { id, hooks } of target.observe ?? []) {
      this.guard.quietly(attempt.exchange.id, id, 'observe', () => {
        const observer = observerOf(hooks.observe(attempt.exchange, attempt));
        if (observer === null) return;
        const note = (error: unknown) => this.guard.note(attempt.exchange.id, id, 'observe', error);
        observers.push(new GuardedObserver(observer, note));
      });
    }
    return observers;
  }
}
