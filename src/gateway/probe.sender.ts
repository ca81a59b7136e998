import { Inject, Injectable } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import { JsonDocument } from '../common/json/json-document.js';
import { type Clock, timerDelay } from '../common/time/clock.js';
import type { ModelEntryConfig, UpstreamConfig } from '../config/gateway-config.js';
import { plainModel } from '../config/plain-model.js';
import { GATE_SOURCE, type GateSource } from '../contracts/gate.js';
import { CHAT, type Operation } from '../contracts/operation.js';
import { CLOCK, type ProbeSender } from '../contracts/ports.js';
import type { Candidate } from '../routing/candidate.js';
import { UpstreamRegistry } from '../upstreams/upstream.registry.js';
import { AttemptShaper } from './attempt.shaper.js';
import type { CompiledTarget } from './compiled-target.js';
import { GetProbeRun } from './get-probe-run.js';
import { GatewayExchange } from './gateway-exchange.js';
import { PipelineCompiler } from './pipeline.compiler.js';
import { PluginGuard } from './plugin.guard.js';
import { ProbeRun } from './probe-run.js';
import { probeRequest } from './probe-request.js';
import { QuotaDesk } from './quota-desk.js';
import type { Shaping } from './shaping.js';
import { stageEnd } from './stage-wait.js';
import { UsageObserver } from './usage.observer.js';
import { getProbeRequest, upstreamRequest } from './upstream-request.js';

/** Where the upstream has no first-byte window of its own. */
const DEFAULT_WINDOW_MS = 30_000;

/**
 * Sends background probes: a small completion through the same stages as requests (patches, backfill, session header,
 * headers), or a GET with nothing but key and headers.
 */
@Injectable()
export class GatewayProbeSender implements ProbeSender {
  readonly #candidates = new Map<string, Candidate>();

  constructor(
    @Inject(CLOCK) private readonly clock: Clock,
    private readonly guard: PluginGuard,
    private readonly registry: UpstreamRegistry,
    private readonly compiler: PipelineCompiler,
    private readonly shaper: AttemptShaper,
    private readonly quotas: QuotaDesk,
    @Inject(GATE_SOURCE) private readonly gates: GateSource,
  ) {}

  async probe(upstream: UpstreamConfig, signal: AbortSignal): Promise<boolean | null> {
    const startedAt = this.clock.now();
    const windowMs = upstream.firstByteTimeoutMs > 0 ? upstream.firstByteTimeoutMs : DEFAULT_WINDOW_MS;
    try {
      const probe = probeRequest(upstream);
      const target = this.#target(upstream, probe?.operation ?? CHAT);
      if (target === null) return null;
      if (upstream.probe.mode === 'get') {
        const { client } = target.candidate.upstream;
        const request = getProbeRequest(target, upstream.probe.path);
        return await new GetProbeRun(client, request, upstream.probe.expect, timerDelay(windowMs)).run(
          signal,
        );
      }
      if (probe === null) return null;
      const exchange = new GatewayExchange({
        id: `probe-${randomUUID()}`,
        headers: {},
        passedHeaders: [],
        contentType: 'application/json',
        query: '',
        body: JsonDocument.parse(probe.body),
        form: null,
        operation: probe.operation,
        startedAt: 0,
        caller: null,
        route: null,
      });
      exchange.model = target.candidate.model;
      const quota = await this.quotas.take(exchange, target);
      if (quota === 'used up') return null;
      try {
        const attempt = this.shaper.make(exchange, target, 1, true);
        const shaping = this.shaper.shape(attempt, target);
        if (shaping !== null && !(await this.#shaped(shaping, exchange, startedAt, windowMs, signal)))
          return false;
        quota?.shaped(attempt, false);
        const { client } = target.candidate.upstream;
        const request = upstreamRequest(target, attempt, exchange.input);
        const leftMs = windowMs - (this.clock.now() - startedAt);
        const alive = await new ProbeRun(client, request, timerDelay(leftMs)).run(signal);
        // A provider that does not answer counts nothing; else its rest would use up the quota of its return.
        if (alive) quota?.end(true, 'ok', new UsageObserver());
        return alive;
      } finally {
        quota?.giveBack();
      }
    } catch {
      // A stage that fails on a probe has said so in the log; the upstream stays where it is.
      return false;
    }
  }

  /** False: a plugin takes longer than the probe may, or than there is anything to probe. */
  async #shaped(
    shaping: Shaping,
    exchange: GatewayExchange,
    startedAt: number,
    windowMs: number,
    signal: AbortSignal,
  ): Promise<boolean> {
    const over = () => exchange.giveUp('client_gone');
    signal.addEventListener('abort', over);
    if (signal.aborted) over();
    try {
      const end = await stageEnd(shaping.done, exchange, startedAt + windowMs, this.clock);
      if (end === 'done') return true;
      shaping.abandon();
      const late = end === 'late';
      const why = late ? `of a probe within ${windowMs}ms` : 'of a probe that was called off';
      this.guard.abandoned(exchange.id, shaping.plugin, 'onAttempt', why, !late);
      exchange.abandon();
      return false;
    } finally {
      signal.removeEventListener('abort', over);
    }
  }

  /** As for a request to a model that has no patch of its own. Null: no key can be used now. */
  #target(upstream: UpstreamConfig, operation: Operation): CompiledTarget | null {
    let candidate = this.#candidates.get(upstream.id);
    if (candidate === undefined) {
      const model = plainModel('', [upstream]);
      const entry = model.entries[0] as ModelEntryConfig;
      const gate = this.gates.gateOf(model, entry);
      const gates = gate === null ? null : [gate];
      candidate = { model, entry, upstream: this.registry.get(upstream.id), gates };
      this.#candidates.set(upstream.id, candidate);
    }
    const { keys } = candidate.upstream;
    const key = keys === null ? null : keys.peek();
    return keys !== null && key === null ? null : this.compiler.target(candidate, key, operation);
  }
}
