import { ChunkList } from '../../common/bytes/chunk-list.js';
import { endsWithConnection } from '../../common/http/response-headers.js';
import { JsonDocument } from '../../common/json/json-document.js';
import { JsonEnd } from '../../common/json/json-end.js';
import { JsonLimitError, JsonSyntaxError } from '../../common/json/json-syntax-error.js';
import { isNothing } from '../../common/json/raw-value.js';
import { StreamLimitError } from '../../common/sse/stream-limit.js';
import type { AttemptFailure } from '../../contracts/exchange.js';
import type { ErrorJudge } from './error-judge.js';
import { limitFailure } from './limit-failure.js';
import type { AnswerHost, AnswerReader } from './answer-reader.js';

/** Up to here an answer is held until it is complete, so that a break can still fail over. */
const HOLD_LIMIT_BYTES = 8 * 1024 * 1024;
/** An answer that must be read is held to the end. */
const READ_LIMIT_BYTES = 64 * 1024 * 1024;

export interface JsonAnswerOptions {
  /** False for a body with a content coding that nobody must read: it is held, but not looked at. */
  readonly inspected: boolean;
  /** The body was decoded on its way here. */
  readonly decoded: boolean;
  readonly contentType?: string;
  /** Says what an error object means; null = that the provider failed. */
  readonly judge: ErrorJudge | null;
  /** What else is a failure than an error object, by the protocol. */
  readonly isFailure?: (answer: JsonDocument) => boolean;
}

/** A JSON answer: held until complete, inspected, transformed where asked, sent with its length. */
export class JsonAnswerReader implements AnswerReader {
  readonly #held = new ChunkList();
  #piping = false;
  /** Some providers send white space while they think. */
  #blank = true;
  #over = false;
  /** Where nothing but the JSON itself tells whether a piped answer is whole. */
  #jsonEnd: JsonEnd | null = null;
  readonly #mustRead: boolean;

  constructor(
    private readonly host: AnswerHost,
    private readonly options: JsonAnswerOptions,
  ) {
    this.#mustRead = options.inspected && host.transforming;
  }

  data(chunk: Buffer): boolean {
    if (this.#over) return true;
    if (this.#piping) {
      if (this.options.inspected) this.host.piece(chunk);
      this.#jsonEnd?.push(chunk);
      return this.host.sink.write(chunk);
    }
    if (this.#blank && !isBlank(chunk)) {
      this.#blank = false;
      this.host.tokenSeen();
    }
    this.#held.push(chunk);
    if (this.#held.length <= HOLD_LIMIT_BYTES) return true;
    if (!this.#mustRead) return this.#pipe();
    if (this.#held.length > READ_LIMIT_BYTES) {
      this.#held.take();
      this.#over = true;
      this.host.fail({ result: 'net_err', status: this.host.status, reason: 'answer larger than 64 MiB' });
    }
    return true;
  }

  end(): void {
    if (this.#over) return;
    if (this.#piping) {
      this.#endPiped();
    } else if (this.options.inspected) {
      this.#inspect();
    } else {
      this.#send(this.#held.chunks, this.options.decoded);
    }
  }

  broken(failure: AttemptFailure): void {
    if (!this.#piping) {
      this.host.fail(failure);
      return;
    }
    this.host.sink.cut(this.host.breakCause);
    this.host.interrupted(failure);
  }

  #endPiped(): void {
    if (this.#jsonEnd !== null && !this.#jsonEnd.reached) {
      this.broken({ result: 'net_err', status: this.host.status, reason: 'answer is no complete JSON' });
      return;
    }
    this.host.sink.end();
    this.host.finish('ok');
  }

  #pipe(): boolean {
    this.#piping = true;
    if (this.options.inspected && endsWithConnection(this.host.headers)) {
      this.#jsonEnd = new JsonEnd();
      for (const part of this.#held.chunks) this.#jsonEnd.push(part);
    }
    this.#commit(this.options.decoded, undefined);
    const parts = this.#held.take();
    if (this.options.inspected) for (const part of parts) this.host.piece(part);
    return this.host.sink.write(parts);
  }

  #inspect(): void {
    const document = documentOf(this.#held.chunks);
    if (document === 'beyond us') {
      for (const part of this.#held.chunks) this.host.piece(part);
      this.#send(this.#held.chunks, this.options.decoded);
      return;
    }
    if (document === undefined) {
      if (isJson(this.#held.chunks)) this.#send(this.#held.chunks, this.options.decoded);
      else
        this.host.fail({ result: 'net_err', status: this.host.status, reason: 'answer is no complete JSON' });
      return;
    }
    if (isErrorAnswer(document) || this.options.isFailure?.(document) === true) {
      const { judge } = this.options;
      if (judge !== null) judge.inside(this.#held.concat());
      else this.host.fail({ result: '5xx', status: this.host.status, reason: 'returned an error object' });
      return;
    }
    try {
      this.host.whole(document);
    } catch (error) {
      if (!(error instanceof StreamLimitError)) throw error;
      this.host.fail(limitFailure(error, this.host.status));
      return;
    }
    const changed = this.host.transforming;
    this.#send(changed ? document.parts() : this.#held.chunks, changed || this.options.decoded);
  }

  #send(parts: readonly Buffer[], bodyChanged: boolean): void {
    let contentLength = 0;
    for (const part of parts) contentLength += part.length;
    this.#commit(bodyChanged, contentLength);
    this.host.sink.end(parts);
    this.host.finish('ok');
  }

  #commit(bodyChanged: boolean, contentLength: number | undefined): void {
    const { contentType } = this.options;
    this.host.commit({ kind: 'json', bodyChanged, contentType, contentLength });
  }
}

/** A JSON 2xx with `error` and no `choices` is a failure; `error: null` is no error. */
export function isErrorAnswer(document: JsonDocument): boolean {
  return !isNothing(document.raw('error')) && isNothing(document.raw('choices'));
}

/** `beyond us`: whole, as far as brackets tell, but too deep or of too many members to be read: it passes as it is. */
function documentOf(parts: readonly Buffer[]): JsonDocument | 'beyond us' | undefined {
  try {
    return JsonDocument.parse(parts);
  } catch (error) {
    if (!(error instanceof JsonSyntaxError)) throw error;
    if (!(error instanceof JsonLimitError)) return undefined;
    const end = new JsonEnd();
    for (const part of parts) end.push(part);
    return end.reached ? 'beyond us' : undefined;
  }
}

function isBlank(chunk: Buffer): boolean {
  for (const byte of chunk) if (byte > 32) return false;
  return true;
}

/** Whole JSON that is no object: rare enough to be parsed. */
function isJson(parts: readonly Buffer[]): boolean {
  const text = Buffer.concat(parts as Buffer[]).toString('utf8');
  if (text.trimStart().startsWith('{')) return false;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
