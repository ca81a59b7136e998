import { Injectable } from '@nestjs/common';
import type { Attempt } from '../contracts/exchange.js';
import type { StreamObserver, StreamTransform } from '../contracts/stream.js';
import type { CompiledTarget } from './compiled-target.js';
import { GuardedTransform } from './guarded-transform.js';
import { PluginGuard } from './plugin.guard.js';
import { StreamPipeline } from './stream-pipeline.js';
import type { UsageObserver } from './usage.observer.js';

const NO_TRANSFORMS: readonly StreamTransform[] = [];

/** Opens the `onResponse` and `observe` stages for one answer. */
@Injectable()
export class AnswerStages {
  constructor(private readonly guard: PluginGuard) {}

  /** Throws the answer for the client where a stage that may change the answer cannot be opened. */
  open(target: CompiledTarget, attempt: Attempt, usage: UsageObserver): StreamPipeline {
    const requestId = attempt.exchange.id;
    const transforms = target.onResponse === null ? NO_TRANSFORMS : this.#transforms(target, attempt);
    return new StreamPipeline(transforms, this.#observers(target, attempt, usage), (error) =>
      this.guard.note(requestId, 'observer', 'observe', error),
    );
  }

  #transforms(target: CompiledTarget, attempt: Attempt): StreamTransform[] {
    const transforms: StreamTransform[] = [];
    for (const { id, hooks } of target.onResponse ?? []) {
      try {
        const transform = hooks.onResponse(attempt.exchange, attempt);
        if (transform === null) continue;
        const note = (error: unknown) => this.guard.note(attempt.exchange.id, id, 'onResponse', error);
        transforms.push(new GuardedTransform(transform, note));
      } catch (error) {
        throw this.guard.refusal(attempt.exchange.id, id, 'onResponse', error);
      }
    }
    return transforms;
  }

  #observers(target: CompiledTarget, attempt: Attempt, usage: UsageObserver): StreamObserver[] {
    const observers: StreamObserver[] = [usage];
    for (const { id, hooks } of target.observe ?? []) {
      this.guard.quietly(attempt.exchange.id, id, 'observe', () => {
        const observer = hooks.observe(attempt.exchange, attempt);
        if (observer !== null) observers.push(observer);
      });
    }
    return observers;
  }
}
