import type { Logger } from 'pino';
import { PluginMistake } from '../../common/errors/plugin-mistake.js';
import { formatDuration } from '../../common/time/duration.js';
import { printable } from '../../common/text/mask.js';
import type { AttemptFailure, AttemptRecord, AttemptResult } from '../../contracts/exchange.js';

/** One model at one upstream, as a line names it: safe to print, see {@link shownTarget}. */
export interface LoggedTarget {
  readonly model: string;
  readonly upstream: string;
  readonly provider: string;
  /** Id of the key, where the provider has more than one. */
  readonly key?: string;
}

/** What follows a failed attempt, for its line. */
export interface Following {
  /** Of what rests; 0 = nothing does. */
  readonly restMs: number;
  /** What rests. */
  readonly resting: 'backoff' | 'key' | 'upstream';
  readonly next: 'answer interrupted' | 'failover' | 'next key' | 'retry' | 'passed on';
}

/** Made once for each target, since ids and names are texts of the file and of its writer. */
export function shownTarget(model: string, upstream: string, provider: string, key?: string): LoggedTarget {
  const shown = { model: printable(model), upstream: printable(upstream), provider: printable(provider) };
  return key === undefined ? shown : { ...shown, key: printable(key) };
}

/**
 * The lines of the gateway, in fixed words; the same facts stand as fields. Never sees a prompt, an
 * answer, a header or a key. Every id and name has gone through `printable`, so that no text of a
 * client forges a line.
 */
export class GatewayLog {
  /** Each with its target's ids already in JSON. */
  readonly #ofTarget = new WeakMap<LoggedTarget, Logger>();

  constructor(private readonly logger: Logger) {}

  get debugEnabled(): boolean {
    return this.logger.isLevelEnabled('debug');
  }

  /** `trial`: it rests, and this request tries whether it is back. */
  claimed(requestId: string, target: LoggedTarget, slots: string, trial = false): void {
    if (!this.debugEnabled) return;
    const { model, upstream, provider, key } = target;
    this.logger.debug(
      {
        request_id: requestId,
        model,
        upstream,
        provider,
        ...(key === undefined ? {} : { key }),
        active: slots,
      },
      `chat model=${model} upstream=${upstream} provider=${provider}${key === undefined ? '' : ` key=${key}`} active[${upstream}]=${slots}${trial ? ' trial' : ''}`,
    );
  }

  /** What came of a trial; the failure of one has its own line as well. */
  tried(requestId: string, target: LoggedTarget, result: AttemptResult, failed: boolean): void {
    if (!this.debugEnabled) return;
    const { model, upstream, provider } = target;
    const verdict = failed ? 'failed, stays in backoff' : 'decided nothing';
    this.logger.debug(
      { request_id: requestId, model, upstream, provider, result },
      `chat model=${model} upstream=${upstream} trial ${result === 'ok' ? 'ok, back in the pool' : verdict}`,
    );
  }

  failedOver(requestId: string, target: LoggedTarget, failure: AttemptFailure, following: Following): void {
    const { model, upstream, provider, key } = target;
    const what = failure.result === 'timeout' ? `TIMEOUT: ${failure.reason}` : failure.reason;
    const { next } = following;
    const restMs = Math.round(following.restMs);
    const place = key === undefined ? `upstream=${upstream}` : `upstream=${upstream} key=${key}`;
    this.logger.warn(
      {
        request_id: requestId,
        model,
        upstream,
        provider,
        ...(key === undefined ? {} : { key }),
        result: failure.result,
        class: failure.class,
        status: failure.status,
        rest_ms: restMs,
      },
      `chat model=${model} ${place} ${what}${next === 'answer interrupted' ? ', ' : ' → '}${next}${restOf(failure, following)}`,
    );
  }

  /** `position`: how many are served before it at the best of its upstreams, and one; 0 = it waits for none of them yet. */
  queued(requestId: string, model: string, position: number): void {
    if (!this.debugEnabled) return;
    const name = printable(model);
    this.logger.debug(
      { request_id: requestId, model: name, position },
      position === 0
        ? `chat model=${name} waits for a place of its consumer`
        : `chat model=${name} waits for a slot (position ${position})`,
    );
  }

  skipped(requestId: string, target: LoggedTarget, restingMs: number): void {
    if (!this.debugEnabled) return;
    const { model, upstream, provider } = target;
    this.logger.debug(
      { request_id: requestId, model, upstream, provider },
      `chat model=${model} upstream=${upstream} in backoff (~${Math.ceil(restingMs / 1000)}s), skipped`,
    );
  }

  /** Skipped for another reason than a rest. */
  closed(requestId: string, target: LoggedTarget, reason: string, closedMs: number): void {
    if (!this.debugEnabled) return;
    const { model, upstream, provider } = target;
    const open = Number.isFinite(closedMs) ? ` (~${Math.ceil(closedMs / 1000)}s)` : '';
    this.logger.debug(
      { request_id: requestId, model, upstream, provider, reason },
      `chat model=${model} upstream=${upstream} closed by ${reason}${open}, skipped`,
    );
  }

  /** A dry run: nothing was sent. */
  explained(requestId: string, model: string): void {
    const name = printable(model);
    this.logger.info({ request_id: requestId, model: name }, `chat model=${name} explained, sent nowhere`);
  }

  /** A name that no model has was taken to the default model. */
  defaulted(requestId: string, asked: string, model: string): void {
    const name = printable(model);
    const shown = printable(asked, 100);
    this.logger.warn(
      { request_id: requestId, model: name, requested_model: shown },
      `chat model=${name} takes the unknown name "${shown}" (default_model)`,
    );
  }

  /** The summary line of a request that the proxy answered itself. `detail` stands in brackets. */
  rejected(
    requestId: string,
    model: string,
    status: number,
    message: string,
    detail = '',
    attempts: readonly AttemptRecord[] = [],
    summary: object = {},
  ): void {
    const name = printable(model);
    const line = `chat model=${name} ${status} ${message}${detail === '' ? '' : ` (${detail})`}`;
    const chain = chainOf(attempts);
    const fields = {
      request_id: requestId,
      model: name,
      status,
      ...(chain === '' ? {} : { chain }),
      ...summary,
    };
    const text = chain === '' ? line : `${line} chain=${chain}`;
    if (status >= 500) this.logger.warn(fields, text);
    else this.logger.info(fields, text);
  }

  /** The summary line of a request that an upstream answered. */
  done(
    requestId: string,
    target: LoggedTarget,
    outcome: {
      result: AttemptResult;
      status: number;
      durationMs: number;
      attempts: readonly AttemptRecord[];
      /** Stands in brackets. */
      remark?: string;
    },
    slots: string,
    summary: object = {},
  ): void {
    const { model, upstream } = target;
    const { result, status, remark = '' } = outcome;
    const duration = Math.round(outcome.durationMs);
    const line = `chat model=${model} upstream=${upstream} done result=${result} status=${status} duration=${duration}ms active[${upstream}]=${slots}${remark === '' ? '' : ` (${remark})`}`;
    const fields = {
      request_id: requestId,
      result,
      status,
      duration_ms: duration,
      attempts: outcome.attempts.length,
      ...summary,
    };
    const chain = outcome.attempts.length > 1 ? chainOf(outcome.attempts) : '';
    const logger = this.#loggerOf(target);
    const whole = chain === '' ? fields : { ...fields, chain };
    const text = chain === '' ? line : `${line} chain=${chain}`;
    if (result === 'ok' || result === '4xx' || result === 'cancelled') logger.info(whole, text);
    else logger.warn(whole, text);
  }

  #loggerOf(target: LoggedTarget): Logger {
    let logger = this.#ofTarget.get(target);
    if (logger === undefined) {
      const { model, upstream, provider } = target;
      logger = this.logger.child({ model, upstream, provider });
      this.#ofTarget.set(target, logger);
    }
    return logger;
  }

  /** The client went away before any upstream was asked. */
  left(requestId: string, model: string, durationMs: number, summary: object = {}): void {
    const name = printable(model);
    const duration = Math.round(durationMs);
    this.logger.info(
      { request_id: requestId, model: name, duration_ms: duration, ...summary },
      `chat model=${name} client left after ${duration}ms`,
    );
  }

  /** `wake`: what a success means. */
  probed(upstream: string, provider: string, ok: boolean, wake: 'full' | 'trial' = 'full'): void {
    const id = printable(upstream);
    const fields = { upstream: id, provider: printable(provider), result: ok ? 'ok' : 'fail' };
    if (ok && wake === 'full') this.logger.info(fields, `probe upstream=${id} ok, back in the pool`);
    else if (ok) this.logger.debug(fields, `probe upstream=${id} ok, a request may try it`);
    else this.logger.debug(fields, `probe upstream=${id} silent, stays in backoff`);
  }

  pluginFailed(requestId: string, plugin: string, hook: string, error: unknown): void {
    const id = printable(plugin);
    this.logger.error(
      { request_id: requestId, plugin: id, hook, ...describeError(error) },
      `plugin ${id} failed in ${hook}${mistakeOf(error)}`,
    );
  }

  /** A hook of the end of the service; `owner` in words. */
  closingFailed(owner: string, hook: string, error: unknown): void {
    this.logger.error({ hook, ...describeError(error) }, `server: ${hook} of ${printable(owner)} failed`);
  }

  /** Its hook had not ended when nobody waited for it any more. `quiet`: as it may be, since nobody wants the result. */
  pluginAbandoned(requestId: string, plugin: string, hook: string, why: string, quiet: boolean): void {
    const id = printable(plugin);
    const fields = { request_id: requestId, plugin: id, hook };
    const line = `plugin ${id} had not ended in ${hook} ${why}, it is not waited for`;
    if (quiet) this.logger.debug(fields, line);
    else this.logger.warn(fields, line);
  }

  /** An error of ours: what and where, without the message, which may hold a client's text. */
  unexpected(requestId: string, where: string, error: unknown): void {
    this.logger.error({ request_id: requestId, ...describeError(error) }, `unexpected error in ${where}`);
  }

  /** Once for each outage. */
  stateLost(reason: string, onError: 'local' | 'reject' | 'strict'): void {
    this.logger.warn(
      { reason, on_error: onError },
      `state: redis is gone (${reason}), ${WITHOUT_STATE[onError]}`,
    );
  }

  stateBack(afterMs: number): void {
    const after = Math.round(afterMs);
    this.logger.info({ outage_ms: after }, `state: redis is back after ${after}ms`);
  }

  info(message: string, fields: object = {}): void {
    this.logger.info(fields, message);
  }

  warn(message: string, fields: object = {}): void {
    this.logger.warn(fields, message);
  }
}

/** The whole way of a request in one word: `local-qwen=503,openai/b=429,openai-big=ok`. */
function chainOf(attempts: readonly AttemptRecord[]): string {
  return attempts
    .map(({ upstream, key, status, result }) => {
      const place = key === undefined ? printable(upstream) : `${printable(upstream)}/${printable(key)}`;
      return `${place}=${status ?? result}`;
    })
    .join(',');
}

/** In brackets: what rests, and what the operator should look at. */
function restOf(failure: AttemptFailure, { restMs, resting }: Following): string {
  const told: string[] = [];
  if (restMs > 0) {
    const duration = formatDuration(Math.round(restMs));
    told.push(
      resting === 'backoff'
        ? `backoff: rest ${duration}`
        : `${failure.class ?? ''}: ${resting} rests ${duration}`,
    );
  }
  if (failure.class === 'model_gone' && resting !== 'backoff') told.push('check url and model');
  return told.length === 0 ? '' : ` (${told.join('; ')})`;
}

const WITHOUT_STATE = {
  local: 'each replica has its part of every limit',
  reject: 'requests are refused',
  strict: 'nothing that has a limit is claimed',
} as const;

/** Trap: what a plugin throws may be anything, and throw itself when it is looked at. */
function describeError(error: unknown): { error: string; at?: string } {
  try {
    if (!(error instanceof Error)) return { error: typeof error };
    const { name, stack } = error as { readonly name: unknown; readonly stack?: unknown };
    const kind = typeof name === 'string' ? name : 'Error';
    const at = typeof stack === 'string' ? /\n\s+at (.{1,200})/.exec(stack)?.[1] : undefined;
    return at === undefined ? { error: kind } : { error: kind, at };
  } catch {
    return { error: 'unreadable' };
  }
}

/** What a plugin did wrong, in words of ours. */
function mistakeOf(error: unknown): string {
  try {
    return error instanceof PluginMistake ? `: ${error.message}` : '';
  } catch {
    return '';
  }
}
