import type { ExchangeInterceptor } from '../contracts/interceptor.js';
import type { LoggedTarget } from '../observability/log/gateway-log.js';
import type { AttemptSeries } from '../observability/metrics/gateway.metrics.js';
import type { QuotaSet } from '../quotas/quota-set.js';
import type { Operation } from '../contracts/operation.js';
import type { Candidate } from '../routing/candidate.js';
import type { PoolKey } from '../upstreams/keys/pool-key.js';
import type { Classify } from './answer/error-judge.js';

/** An interceptor with the id it is known by. */
export interface Stage<K extends keyof ExchangeInterceptor> {
  readonly id: string;
  readonly hooks: ExchangeInterceptor & Required<Pick<ExchangeInterceptor, K>>;
}

/** All that can be known beforehand about one candidate; an empty stage list is null and costs nothing. */
export interface CompiledTarget {
  readonly candidate: Candidate;
  /** Of a pool; null = the provider's single key, or none. */
  readonly key: PoolKey | null;
  readonly operation: Operation;
  readonly onAttempt: readonly Stage<'onAttempt'>[] | null;
  readonly onResponse: readonly Stage<'onResponse'>[] | null;
  readonly observe: readonly Stage<'observe'>[] | null;
  /** A stream of it goes to the client only once it means something. */
  readonly barrier: boolean;
  readonly series: AttemptSeries;
  readonly logged: LoggedTarget;
  /** The real model name as JSON. */
  readonly modelBytes: Buffer;
  readonly path: string;
  /** What an attempt counts against; null for most. */
  readonly quota: QuotaSet | null;
  /** Whether streams may be asked for their usage. */
  readonly asksUsage: boolean;
  /** In lower case. */
  readonly fixedHeaderNames: ReadonlySet<string>;
  /** The client's headers of these names never pass: fixed ones, and the session header, even where none is set. */
  readonly replacedHeaderNames: ReadonlySet<string>;
  /** `accept-encoding` and the header with the key, as a flat list. */
  readonly ownHeaders: readonly string[];
  /** For names that the client did not send; null for most. */
  readonly defaultHeaders: readonly (readonly [name: string, value: string])[] | null;
  /** The provider's fixed headers as a flat list; they win over all others. */
  readonly fixedHeaders: readonly string[];
  /** `x-llm-proxy-*` of the answer, without what the attempts decide. */
  readonly answerHeaders: readonly string[];
  /** What stands before the status in this target's step of `x-llm-proxy-trail`; null = attempts are not shown. */
  readonly trailStep: string | null;
  /** How this upstream's errors are told apart; null = by status alone. */
  readonly classify: Classify | null;
  readonly mask: (text: string) => string;
  readonly maskBytes: (bytes: Buffer) => Buffer;
}
