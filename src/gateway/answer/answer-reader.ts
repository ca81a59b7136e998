import type { JsonDocument } from '../../common/json/json-document.js';
import type { BreakCause } from '../../common/errors/error-form.js';
import type { UpstreamHeaders } from '../../common/http/response-headers.js';
import type { AttemptFailure } from '../../contracts/exchange.js';
import type { InterruptionPhase } from '../../observability/metrics/gateway.metrics.js';
import type { StreamPipeline } from '../stream-pipeline.js';
import type { ResponseSink } from '../response-sink.js';
import type { PassableAnswer } from './passable-answer.js';

/** Reads the body of one answer of one kind, and says to its {@link AnswerHost} what becomes of the attempt. */
export interface AnswerReader {
  /** False asks for a pause. */
  data(chunk: Buffer): boolean;
  /** The body ended cleanly. */
  end(): void;
  /** The body broke off, or its time is over. */
  broken(failure: AttemptFailure): void;
  /** The attempt is over, whoever ended it: nothing more may be said or sent. */
  stop?(): void;
  /** The client takes bytes again. True where the reader itself sees to it that the upstream goes on. */
  drained?(): boolean;
}

/** What a reader knows of its attempt, and its ways to end it. */
export interface AnswerHost {
  readonly status: number;
  readonly headers: UpstreamHeaders;
  readonly sink: ResponseSink;
  /** True when anything was sent to the client. */
  readonly committed: boolean;
  /** Whether a stage may change this answer, so that it must be read. */
  readonly transforming: boolean;
  /** The stages of this answer, for a stream. Made at the first call. */
  pipeline(): StreamPipeline;
  /** Leads a whole JSON answer through its stages. */
  whole(answer: JsonDocument): void;
  /** Shows the bytes of a JSON answer that is too large to be held to those that look at answers. */
  piece(bytes: Buffer): void;
  /** Sends the head to the client: from here nothing can be tried again. */
  commit(options: CommitOptions): void;
  /** The client has its whole answer. */
  finish(result: 'ok' | '4xx'): void;
  /** Nothing was sent, and this answer is none: the next upstream may be tried. `passable` is sent if none is better. */
  fail(failure: AttemptFailure, passable?: PassableAnswer): void;
  /** What a reader is told by `broken` came of. */
  readonly breakCause: BreakCause;
  /** The answer broke off after it had begun; the client has been told. `phase`: of a stream. */
  interrupted(failure: AttemptFailure, phase?: InterruptionPhase): void;
  /** Whether another upstream may go on with this answer: not where this side, or the client, ends it. */
  readonly continuable: boolean;
  /** The answer broke off, and the client has not been told: another upstream is to go on. */
  suspended(failure: AttemptFailure, phase: InterruptionPhase): void;
  /** The first meaningful part of the answer came. */
  tokenSeen(): void;
  /** An error of this side came up where nobody else would hear of it. */
  crashed(error: unknown): void;
  /** Lets a paused body go on. */
  resume(): void;
}

export interface CommitOptions {
  readonly kind: 'sse' | 'json' | 'other';
  /** The bytes are not the upstream's any more. */
  readonly bodyChanged: boolean;
  /** Length of the body where it is known; absent = the upstream's, where it said one and the bytes are its own. */
  readonly contentLength?: number;
  /** Content type to send where the upstream named none, or another. */
  readonly contentType?: string;
}
