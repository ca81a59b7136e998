import { Registry } from 'prom-client';
import { JsonDocument } from '../../src/common/json/json-document.js';
import { monotonicClock } from '../../src/common/time/clock.js';
import { ConfigStore } from '../../src/config/config.store.js';
import { loadConfig } from '../../src/config/loader/load-config.js';
import type { AttemptOutcome } from '../../src/gateway/attempt-outcome.js';
import { AttemptRun } from '../../src/gateway/attempt-run.js';
import type { AttemptQuota } from '../../src/gateway/attempt-quota.js';
import type { ErrorClassifiers } from '../../src/gateway/error-classifiers.js';
import { CHAT, type Operation } from '../../src/contracts/operation.js';
import type { StreamObserver, StreamTransform } from '../../src/contracts/stream.js';
import { GatewayAttempt } from '../../src/gateway/gateway-attempt.js';
import { GatewayExchange } from '../../src/gateway/gateway-exchange.js';
import { PipelineCompiler } from '../../src/gateway/pipeline.compiler.js';
import type { PluginGuard } from '../../src/gateway/plugin.guard.js';
import type { PluginExplorer } from '../../src/gateway/plugin.explorer.js';
import { StreamPipeline } from '../../src/gateway/stream-pipeline.js';
import { GatewayMetrics } from '../../src/observability/metrics/gateway.metrics.js';
import { classify } from '../../src/upstreams/failures/classify.js';
import { ProviderClient } from '../../src/upstreams/provider-client.js';
import { Upstream } from '../../src/upstreams/upstream.js';
import { RecordingSink } from './recording-sink.js';
import type { Script, ScriptedUpstream } from './scripted-upstream.js';

export interface AttemptOptions {
  readonly stream?: boolean;
  /** `stream` of the final body where it is not the client's. */
  readonly streamAsked?: boolean;
  readonly firstByte?: string;
  readonly timeout?: string;
  readonly transforms?: readonly StreamTransform[];
  readonly url?: string;
  readonly operation?: Operation;
  readonly now?: () => number;
  readonly quota?: AttemptQuota;
}

export interface StartedAttempt {
  readonly sink: RecordingSink;
  readonly exchange: GatewayExchange;
  readonly crashes: unknown[];
  readonly outcome: Promise<AttemptOutcome>;
}

/** Starts one attempt at the scripted provider, whose next answer is this script. */
export function startAttempt(
  provider: ScriptedUpstream,
  script: Script,
  options: AttemptOptions = {},
): StartedAttempt {
  provider.next(script);
  const loaded = loadConfig(
    {
      text: JSON.stringify({
        providers: [{ id: 'p', url: options.url ?? provider.url, key: 'sk-0123456789abcdef' }],
        upstreams: [
          {
            id: 'u',
            provider: 'p',
            model: 'real',
            max_concurrency: 1,
            first_byte_timeout: options.firstByte ?? 'PT10S',
            request_timeout: options.timeout ?? 'PT10S',
          },
        ],
        models: [{ name: 'm', upstreams: ['u'] }],
      }),
    },
    {},
  );
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
  const [config] = loaded.config.upstreams;
  const [model] = loaded.config.models;
  if (config === undefined || model === undefined) throw new Error('unreachable');
  const client = new ProviderClient(config.provider);
  const upstream = new Upstream(config, client, null);
  const metrics = new GatewayMetrics(new Registry(), { version: '0', node: '0' }, () => 0);
  const compiler = new PipelineCompiler(
    { interceptors: [] } as unknown as PluginExplorer,
    metrics,
    new ConfigStore(loaded.config),
    { of: () => classify } as unknown as ErrorClassifiers,
    {} as unknown as PluginGuard,
  );
  // No stage is registered here, so the target is told that there are some.
  const onResponse = options.transforms === undefined ? null : [];
  const target = {
    ...compiler.compile(
      {
        model,
        entry: { upstream: config, tier: 1, weight: 1, quota: [], spill: null },
        upstream,
        gates: null,
      },
      null,
      options.operation ?? CHAT,
    ),
    onResponse,
  };
  const body = JsonDocument.parse(
    Buffer.from(JSON.stringify({ model: 'm', stream: options.stream ?? false })),
  );
  const exchange = new GatewayExchange({
    id: 'r',
    headers: {},
    passedHeaders: [],
    contentType: 'application/json',
    query: '',
    body,
    startedAt: 0,
    caller: null,
    form: null,
    operation: options.operation ?? CHAT,
    route: null,
  });
  exchange.model = model;
  const final = body.fork();
  if (options.streamAsked !== undefined) final.set('stream', options.streamAsked);
  const attempt = new GatewayAttempt(exchange, config, null, 1, final, false);
  attempt.quota = options.quota ?? null;
  const clock = options.now === undefined ? monotonicClock : { now: options.now };
  const crashes: unknown[] = [];
  const dependencies = {
    clock,
    wallClockMs: () => 0,
    openPipeline: (
      _target: unknown,
      _attempt: unknown,
      usage: StreamObserver,
      _last: unknown,
      failures: StreamObserver | null,
    ) => new StreamPipeline(options.transforms ?? [], failures === null ? [usage] : [usage, failures]),
    onUsage: () => {},
    onCrash: (_: GatewayExchange, error: unknown) => void crashes.push(error),
  };
  const sink = new RecordingSink();
  const outcome = new AttemptRun(dependencies, exchange, target, attempt, clock.now(), sink).run();
  // Whoever starts it may look at the outcome late.
  outcome.catch(() => {}).finally(() => client.close());
  return { sink, exchange, crashes, outcome };
}
