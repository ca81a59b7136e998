import { errorBytes } from '../../common/errors/error-form.js';
import { upstreamErrorTooLarge, upstreamErrorUnreadable } from '../../common/errors/catalogue.js';
import type { GatewayError } from '../../common/errors/gateway-error.js';
import { rateLimitRestMs } from '../../common/http/rate-limit-rest.js';
import { headerValue } from '../../common/http/response-headers.js';
import { retryAfterMs } from '../../common/http/retry-after.js';
import type { Operation } from '../../contracts/operation.js';
import type { ErrorClass } from '../../contracts/error-class.js';
import type { AttemptFailure, AttemptResult } from '../../contracts/exchange.js';
import type { Classification, Unclassified } from '../../upstreams/failures/classify.js';
import { nothingMasked } from '../secret-mask.js';
import type { AnswerHost } from './answer-reader.js';
import type { PassableAnswer } from './passable-answer.js';

/** More of a body is not looked at. */
const TEXT_LIMIT = 64 * 1024;

export type Classify = (answer: Unclassified) => Classification;

export interface ErrorBody {
  readonly body: Buffer;
  /** False where only the beginning was read: it can tell the class, but it cannot be passed on. */
  readonly complete: boolean;
  /** How its bytes came here: as they are, decoded, or in a coding that nobody here can read. */
  readonly coding: BodyCoding;
}

export type BodyCoding = 'none' | 'decoded' | 'unknown';

export interface JudgeOptions {
  readonly operation: Operation;
  readonly requestId: string;
  readonly classify: Classify;
  /** The request named more than a model that the provider may not know. */
  readonly namesMore?: boolean;
  readonly maskBytes: (bytes: Buffer) => Buffer;
  readonly wallClockMs: () => number;
}

/**
 * Says what an error answer means where errors are told apart. Fails the attempt with the class of the error; an error
 * that is the client's own to mend goes along, ready to be sent. Stateless but for its host.
 */
export class ErrorJudge {
  constructor(
    private readonly host: AnswerHost,
    private readonly options: JudgeOptions,
  ) {}

  /** Of an answer with an error status. */
  judge({ body, complete, coding }: ErrorBody): void {
    const { status } = this.host;
    const found = this.#classified(status, body);
    if (!isPassable(found.class)) {
      this.host.fail(this.#failure(found, resultOf(status), `returned ${status}`));
      return;
    }
    const failure: AttemptFailure = {
      result: resultOf(status),
      status,
      class: found.class,
      reason: `returned ${status}`,
    };
    this.host.fail(failure, this.#passed({ body, complete, coding }));
  }

  /** An error object inside a 2xx, as JSON. */
  inside(body: Buffer): void {
    const { status } = this.host;
    const found = this.#classified(status, body);
    const reason = 'returned an error object';
    if (!isPassable(found.class)) {
      this.host.fail(this.#failure(found, '5xx', reason));
      return;
    }
    // Trap: sent as a success, a client would take it for an answer.
    const meant = found.statusCode ?? 400;
    const passable = this.#passable(meant, body, true);
    // Trap: it may have come in an event stream.
    const options = { ...passable.options, contentType: 'application/json; charset=utf-8' };
    this.host.fail({ result: '4xx', status, class: found.class, reason }, { ...passable, options });
  }

  #classified(status: number, body: Buffer): Classification {
    const text = body.toString('utf8', 0, Math.min(body.length, TEXT_LIMIT));
    const header = (name: string) => headerValue(this.host.headers, name);
    const { namesMore = false } = this.options;
    return this.options.classify({ status, header, json: parsed(body), text, namesMore });
  }

  #failure(
    { class: name, retryDelayMs }: Classification,
    result: AttemptResult,
    reason: string,
  ): AttemptFailure {
    const { status, headers } = this.host;
    const header = (wanted: string) => headerValue(headers, wanted);
    const asked =
      name === 'rate_limited'
        ? rateLimitRestMs(Object.keys(headers), header, this.options.wallClockMs())
        : retryAfterMs(header, this.options.wallClockMs);
    const wanted = asked ?? retryDelayMs;
    return { result, status, class: name, reason, ...(wanted === undefined ? {} : { retryAfterMs: wanted }) };
  }

  #passed({ body, complete, coding }: ErrorBody): PassableAnswer {
    const { status } = this.host;
    // Trap: our keys could not be masked in it.
    if (coding === 'unknown' && this.options.maskBytes !== nothingMasked)
      return replaced(upstreamErrorUnreadable(status), this.options);
    if (!complete) return replaced(upstreamErrorTooLarge(status), this.options);
    return this.#passable(status, body, coding === 'decoded');
  }

  #passable(status: number, body: Buffer, decoded: boolean): PassableAnswer {
    const masked = this.options.maskBytes(body);
    const bodyChanged = decoded || masked !== body;
    return { status, body: masked, options: { kind: 'other', bodyChanged, contentLength: masked.length } };
  }
}

/** What only the client can mend; a too long one may fit another model. */
function isPassable(name: ErrorClass): boolean {
  return name === 'bad_request' || name === 'context_length';
}

function replaced(error: GatewayError, { operation, requestId }: JudgeOptions): PassableAnswer {
  const body = errorBytes(error, operation.form, requestId);
  const contentType = 'application/json; charset=utf-8';
  return {
    status: error.status,
    body,
    options: { kind: 'other', bodyChanged: true, contentLength: body.length, contentType },
  };
}

function resultOf(status: number): AttemptResult {
  if (status === 429) return '429';
  if (status === 402) return '402';
  return status >= 500 ? '5xx' : '4xx';
}

function parsed(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8')) as unknown;
  } catch {
    return undefined;
  }
}
