import { Injectable } from '@nestjs/common';
import { pluginFailed } from '../common/errors/catalogue.js';
import { refusePromise } from '../common/errors/plugin-mistake.js';
import { ConfigStore } from '../config/config.store.js';
import type { ExchangeInterceptor, Target } from '../contracts/interceptor.js';
import type { Operation, OperationName } from '../contracts/operation.js';
import { shownTarget } from '../observability/log/gateway-log.js';
import { GatewayMetrics } from '../observability/metrics/gateway.metrics.js';
import { QuotaSet } from '../quotas/quota-set.js';
import type { Candidate } from '../routing/candidate.js';
import type { PoolKey } from '../upstreams/keys/pool-key.js';
import type { CompiledTarget, Stage } from './compiled-target.js';
import { targetHeaders, trailStep } from './exposure.js';
import { ErrorClassifiers } from './error-classifiers.js';
import { PluginExplorer, type RegisteredInterceptor } from './plugin.explorer.js';
import { meaningIn } from './answer/event-meaning.js';
import { PluginGuard } from './plugin.guard.js';
import { authHeader, defaultHeaders } from './provider-auth.js';
import { bodyMask, headerMask, secretsOf } from './secret-mask.js';

/** Builds what each request needs from interceptors and configuration, once for each candidate, when first used. */
@Injectable()
export class PipelineCompiler {
  readonly #targets = new Map<Operation, Map<PoolKey | null, Map<Candidate, CompiledTarget>>>();
  /** Of all providers: two of them may be one, and tell each other's. */
  readonly #mask: (text: string) => string;
  readonly #maskBytes: (bytes: Buffer) => Buffer;
  #onRequest: readonly Stage<'onRequest'>[] | null | undefined;
  #onFailover: readonly Stage<'onFailover'>[] | null | undefined;
  #onFinish: readonly Stage<'onFinish'>[] | null | undefined;

  constructor(
    private readonly explorer: PluginExplorer,
    private readonly metrics: GatewayMetrics,
    private readonly store: ConfigStore,
    private readonly classifiers: ErrorClassifiers,
    private readonly guard: PluginGuard,
  ) {
    const secrets = [...new Set(store.current.providers.flatMap(secretsOf))];
    this.#mask = headerMask(secrets);
    this.#maskBytes = bodyMask(secrets);
  }

  get onRequest(): readonly Stage<'onRequest'>[] | null {
    return (this.#onRequest ??= stages(this.explorer.interceptors, 'onRequest'));
  }

  get onFailover(): readonly Stage<'onFailover'>[] | null {
    return (this.#onFailover ??= stages(this.explorer.interceptors, 'onFailover'));
  }

  /** In reverse order: who came first leaves last. */
  get onFinish(): readonly Stage<'onFinish'>[] | null {
    if (this.#onFinish === undefined)
      this.#onFinish = stages(this.explorer.interceptors.toReversed(), 'onFinish');
    return this.#onFinish;
  }

  /** `key` null: the provider's single key, or none. `requestId`: of who is the first to need it. */
  target(candidate: Candidate, key: PoolKey | null, operation: Operation, requestId = ''): CompiledTarget {
    const targets = innerMap(innerMap(this.#targets, operation), key);
    let target = targets.get(candidate);
    if (target === undefined)
      targets.set(candidate, (target = this.compile(candidate, key, operation, requestId)));
    return target;
  }

  compile(candidate: Candidate, key: PoolKey | null, operation: Operation, requestId = ''): CompiledTarget {
    const { model, upstream } = candidate;
    const { config } = upstream;
    const { provider } = config;
    const asked: Target = { model, upstream: config, operation: operation.name };
    const here = this.explorer.interceptors.filter((one) => this.#applies(one, asked, requestId));
    const secret = key === null ? provider.key : key.config.value;
    const auth = authHeader(secret, config, operation);
    const own = [['accept-encoding', 'identity'] as const, ...(auth === null ? [] : [auth])];
    const shownKey = upstream.keys?.several === true ? key?.id : undefined;
    const fixedNames = new Set(provider.headers.map(([name]) => name));
    const byDefault = defaultHeaders(operation).filter(([name]) => !fixedNames.has(name));
    return {
      candidate,
      key,
      operation,
      onAttempt: stages(here, 'onAttempt'),
      onResponse: stages(here, 'onResponse'),
      observe: stages(here, 'observe'),
      barrier: meaningIn(operation) !== null && (config.firstTokenTimeoutMs > 0 || provider.errors !== null),
      series: this.metrics.attempts(model.name, config.id, provider.id),
      logged: shownTarget(model.name, config.id, provider.id, shownKey),
      modelBytes: Buffer.from(JSON.stringify(config.model)),
      quota: quotaOf(candidate, key),
      // Elsewhere there is no such option, or usage comes by itself.
      asksUsage: provider.asksUsage && USAGE_ASKED.has(operation.name),
      path: upstream.client.basePath + operation.path,
      fixedHeaderNames: fixedNames,
      replacedHeaderNames:
        provider.sessionHeader === null ? fixedNames : new Set([...fixedNames, provider.sessionHeader]),
      ownHeaders: own.filter(([name]) => !fixedNames.has(name)).flat(),
      defaultHeaders: byDefault.length === 0 ? null : byDefault,
      fixedHeaders: provider.headers.flat(),
      answerHeaders: targetHeaders(candidate, this.store.current.server.expose),
      trailStep:
        this.store.current.server.expose === 'none' ? null : `${trailStep(config.id, shownKey ?? null)}=`,
      classify: provider.errors === null ? null : this.classifiers.of(config),
      mask: this.#mask,
      maskBytes: this.#maskBytes,
    };
  }

  /** Throws the answer for the client where the plugin fails: nobody knows whether it may be left out. */
  #applies({ id, hooks }: RegisteredInterceptor, asked: Target, requestId: string): boolean {
    if (hooks.appliesTo === undefined) return true;
    try {
      const applies = hooks.appliesTo(asked);
      refusePromise(applies, 'appliesTo');
      return applies ?? true;
    } catch (error) {
      this.guard.note(requestId, id, 'appliesTo', error);
      throw pluginFailed();
    }
  }
}

const USAGE_ASKED: ReadonlySet<OperationName> = new Set(['chat', 'completions']);

function innerMap<K, A, B>(outer: Map<K, Map<A, B>>, key: K): Map<A, B> {
  let inner = outer.get(key);
  if (inner === undefined) outer.set(key, (inner = new Map()));
  return inner;
}

/** Of the candidate and of the key together. */
function quotaOf({ gates }: Candidate, key: PoolKey | null): QuotaSet | null {
  const sets = [...(gates ?? []), key?.gate].filter((gate) => gate instanceof QuotaSet);
  const [first, ...others] = sets;
  return first === undefined ? null : others.reduce((all, set) => all.and(set), first);
}

function stages<K extends keyof ExchangeInterceptor>(
  interceptors: readonly RegisteredInterceptor[],
  hook: K,
): readonly Stage<K>[] | null {
  const having = interceptors.filter(({ hooks }) => typeof hooks[hook] === 'function');
  return having.length === 0 ? null : (having as readonly unknown[] as readonly Stage<K>[]);
}
