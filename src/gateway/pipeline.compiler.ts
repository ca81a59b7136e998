import { Injectable } from '@nestjs/common';
import { ConfigStore } from '../config/config.store.js';
import type { ExchangeInterceptor, Target } from '../contracts/interceptor.js';
import { shownTarget } from '../observability/log/gateway-log.js';
import { GatewayMetrics } from '../observability/metrics/gateway.metrics.js';
import { QuotaSet } from '../quotas/quota-set.js';
import type { Candidate } from '../routing/candidate.js';
import type { PoolKey } from '../upstreams/keys/pool-key.js';
import type { CompiledTarget, Stage } from './compiled-target.js';
import { targetHeaders, trailStep } from './exposure.js';
import { ErrorClassifiers } from './error-classifiers.js';
import { PluginExplorer, type RegisteredInterceptor } from './plugin.explorer.js';
import { bodyMask, headerMask, secretsOf } from './secret-mask.js';

/** Builds what each request needs from interceptors and configuration, once for each candidate, when first used. */
@Injectable()
export class PipelineCompiler {
  readonly #targets = new Map<Candidate, CompiledTarget>();
  readonly #targetsByKey = new Map<PoolKey, Map<Candidate, CompiledTarget>>();
  #onRequest: readonly Stage<'onRequest'>[] | null | undefined;
  #onFailover: readonly Stage<'onFailover'>[] | null | undefined;
  #onFinish: readonly Stage<'onFinish'>[] | null | undefined;

  constructor(
    private readonly explorer: PluginExplorer,
    private readonly metrics: GatewayMetrics,
    private readonly store: ConfigStore,
    private readonly classifiers: ErrorClassifiers,
  ) {}

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

  /** `key` null: the provider's single key, or none. */
  target(candidate: Candidate, key: PoolKey | null): CompiledTarget {
    const targets = key === null ? this.#targets : this.#targetsOf(key);
    let target = targets.get(candidate);
    if (target === undefined) targets.set(candidate, (target = this.compile(candidate, key)));
    return target;
  }

  #targetsOf(key: PoolKey): Map<Candidate, CompiledTarget> {
    let targets = this.#targetsByKey.get(key);
    if (targets === undefined) this.#targetsByKey.set(key, (targets = new Map()));
    return targets;
  }

  compile(candidate: Candidate, key: PoolKey | null): CompiledTarget {
    const { model, upstream } = candidate;
    const { config } = upstream;
    const { provider } = config;
    const asked: Target = { model, upstream: config };
    const here = this.explorer.interceptors.filter(({ hooks }) => hooks.appliesTo?.(asked) ?? true);
    const secrets = secretsOf(provider);
    const own = [['accept-encoding', 'identity']];
    const secret = key === null ? provider.key : key.config.value;
    if (secret !== '') own.push(['authorization', `Bearer ${secret}`]);
    const shownKey = upstream.keys?.several === true ? key?.id : undefined;
    const fixedNames = new Set(provider.headers.map(([name]) => name));
    return {
      candidate,
      key,
      onAttempt: stages(here, 'onAttempt'),
      onResponse: stages(here, 'onResponse'),
      observe: stages(here, 'observe'),
      barrier: config.firstTokenTimeoutMs > 0 || provider.errors !== null,
      series: this.metrics.attempts(model.name, config.id, provider.id),
      logged: shownTarget(model.name, config.id, provider.id, shownKey),
      modelBytes: Buffer.from(JSON.stringify(config.model)),
      quota: quotaOf(candidate, key),
      asksUsage: provider.asksUsage,
      path: `${upstream.client.basePath}/chat/completions`,
      fixedHeaderNames: fixedNames,
      replacedHeaderNames:
        provider.sessionHeader === null ? fixedNames : new Set([...fixedNames, provider.sessionHeader]),
      ownHeaders: own.filter(([name]) => !fixedNames.has(name as string)).flat(),
      fixedHeaders: provider.headers.flat(),
      answerHeaders: targetHeaders(candidate, this.store.current.server.expose),
      trailStep:
        this.store.current.server.expose === 'none' ? null : `${trailStep(config.id, shownKey ?? null)}=`,
      classify: provider.errors === null ? null : this.classifiers.of(config),
      mask: headerMask(secrets),
      maskBytes: bodyMask(secrets),
    };
  }
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
