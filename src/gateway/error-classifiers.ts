import { Injectable } from '@nestjs/common';
import { DiscoveryService, Reflector } from '@nestjs/core';
import { PluginMistake, refusePromise } from '../common/errors/plugin-mistake.js';
import type { UpstreamConfig } from '../config/gateway-config.js';
import {
  ERROR_CLASSIFIER_METADATA,
  type ErrorClass,
  type ErrorClassifier,
  type ErrorClassifierOptions,
} from '../contracts/error-class.js';
import { Order } from '../contracts/interceptor.js';
import { classify, isErrorClass } from '../upstreams/failures/classify.js';
import type { Classify } from './answer/error-judge.js';
import { PluginGuard } from './plugin.guard.js';
import { PluginSetupError, registeredTwice } from '../common/errors/plugin-setup-error.js';

interface RegisteredClassifier {
  readonly id: string;
  readonly order: number;
  readonly classifier: ErrorClassifier;
}

/** Finds every provider marked with `@RegisterErrorClassifier`, once at boot, and asks them before the built-in table. */
@Injectable()
export class ErrorClassifiers {
  #found: readonly RegisteredClassifier[] | null = null;

  constructor(
    private readonly discovery: DiscoveryService,
    private readonly reflector: Reflector,
    private readonly guard: PluginGuard,
  ) {}

  /** Ascending by order, ties by id. @throws PluginSetupError where two have one id. */
  get all(): readonly RegisteredClassifier[] {
    return (this.#found ??= this.#explore());
  }

  /** How the errors of one upstream are told apart. */
  of(upstream: UpstreamConfig): Classify {
    if (this.all.length === 0) return classify;
    return (answer) => {
      const builtIn = classify(answer);
      for (const { id, classifier } of this.all) {
        const found = this.#ask(id, () => classifier.classify({ ...answer, upstream }));
        if (found !== undefined) return { ...builtIn, class: found };
      }
      return builtIn;
    };
  }

  #ask(id: string, run: () => unknown): ErrorClass | undefined {
    try {
      const found = run();
      refusePromise(found, 'classify');
      if (found === undefined || isErrorClass(found)) return found;
      throw new PluginMistake('classify returned what is no class');
    } catch (error) {
      this.guard.note('', id, 'classify', error);
      return undefined;
    }
  }

  #explore(): readonly RegisteredClassifier[] {
    const found = new Map<string, RegisteredClassifier>();
    for (const wrapper of this.discovery.getProviders()) {
      const { metatype, instance } = wrapper;
      if (typeof metatype !== 'function' || !instance) continue;
      const options = this.reflector.get<ErrorClassifierOptions | undefined>(
        ERROR_CLASSIFIER_METADATA,
        metatype,
      );
      if (options === undefined || found.get(options.id)?.classifier === instance) continue;
      if (found.has(options.id)) {
        throw new PluginSetupError([{ path: [], message: registeredTwice('classifier', options.id) }]);
      }
      found.set(options.id, {
        id: options.id,
        order: options.order ?? Order.shape,
        classifier: instance as ErrorClassifier,
      });
    }
    return [...found.values()].sort((a, b) => a.order - b.order || (a.id < b.id ? -1 : 1));
  }
}
