import { Injectable } from '@nestjs/common';
import { DiscoveryService, Reflector } from '@nestjs/core';
import { ConfigStore } from '../config/config.store.js';
import { PluginSetupError, registeredTwice } from '../common/errors/plugin-setup-error.js';
import {
  type ExchangeInterceptor,
  INTERCEPTOR_METADATA,
  type InterceptorOptions,
  Order,
} from '../contracts/interceptor.js';

export interface RegisteredInterceptor {
  readonly id: string;
  readonly order: number;
  readonly options: InterceptorOptions;
  readonly hooks: ExchangeInterceptor;
  /** Class of the Nest module that provides it. */
  readonly module: unknown;
}

/** Finds every provider marked with `@RegisterInterceptor`, built-in or not, once at boot, and orders them. */
@Injectable()
export class PluginExplorer {
  #interceptors: readonly RegisteredInterceptor[] | null = null;
  #all: readonly RegisteredInterceptor[] = [];

  constructor(
    private readonly discovery: DiscoveryService,
    private readonly reflector: Reflector,
    private readonly store: ConfigStore,
  ) {}

  /** Ascending by order, ties by id; without those that `disable` names. */
  get interceptors(): readonly RegisteredInterceptor[] {
    return (this.#interceptors ??= this.#explore());
  }

  /** Those of one module, disabled or not. */
  registeredBy(module: unknown): readonly RegisteredInterceptor[] {
    void this.interceptors;
    return this.#all.filter((interceptor) => interceptor.module === module);
  }

  #explore(): readonly RegisteredInterceptor[] {
    const found = new Map<string, RegisteredInterceptor>();
    for (const wrapper of this.discovery.getProviders()) {
      const { metatype, instance } = wrapper;
      if (typeof metatype !== 'function' || !instance) continue;
      const options = this.reflector.get<InterceptorOptions | undefined>(INTERCEPTOR_METADATA, metatype);
      if (options === undefined || found.get(options.id)?.hooks === instance) continue;
      if (found.has(options.id)) {
        throw new PluginSetupError([{ path: [], message: registeredTwice('interceptor', options.id) }]);
      }
      found.set(options.id, {
        id: options.id,
        order: options.order ?? Order.shape,
        options,
        hooks: instance as ExchangeInterceptor,
        module: wrapper.host?.metatype,
      });
    }
    this.#all = [...found.values()];
    const { disable } = this.store.current;
    return [...found.values()]
      .filter(({ id }) => !disable.includes(id))
      .sort((a, b) => a.order - b.order || (a.id < b.id ? -1 : 1));
  }
}
