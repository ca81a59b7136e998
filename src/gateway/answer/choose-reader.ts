import { contentCoding, hasForeignTransferCoding, headerValue } from '../../common/http/response-headers.js';
import { canDecode } from '../../common/http/content-coding.js';
import { retryAfterMs } from '../../common/http/retry-after.js';
import type { AttemptFailure, AttemptResult } from '../../contracts/exchange.js';
import type { Operation } from '../../contracts/operation.js';
import { kindByContentType } from './answer-kind.js';
import type { RelayedAnswer } from '../continuation/relayed-answer.js';
import type { SeamTransform } from '../continuation/seam.transform.js';
import type { AnswerHost, AnswerReader } from './answer-reader.js';
import { BarrierReader } from './barrier.reader.js';
import { ClassifiedErrorReader } from './classified-error.reader.js';
import { ClientErrorReader } from './client-error.reader.js';
import { ContinuableReader } from './continuable.reader.js';
import { DecodingReader } from './decoding.reader.js';
import { EmptyAnswerReader } from './empty-answer.reader.js';
import { type Classify, ErrorJudge } from './error-judge.js';
import { FailedAnswerReader } from './failed-answer.reader.js';
import { JoinAnswerReader } from './join-answer.reader.js';
import { JsonAnswerReader } from './json-answer.reader.js';
import { type AnswerKind, SniffingReader } from './sniffing.reader.js';
import { PipeAnswerReader } from './pipe-answer.reader.js';
import { meaningIn } from './event-meaning.js';
import { nothingMasked } from '../secret-mask.js';
import { failureOf } from './protocol-failure.js';
import { StreamAnswerReader } from './stream-answer.reader.js';
import { StreamForm } from './stream-form.js';

export interface ReaderOptions {
  /** `stream` of the client's own body. */
  readonly clientWantsStream: boolean;
  /** `stream` of the final body. */
  readonly streamAsked: boolean;
  /** A stream is held until it means something. */
  readonly barrier: boolean;
  /** What the client has of an answer that another upstream may go on with, and the stage that keeps it. */
  readonly continuation: { readonly answer: RelayedAnswer; readonly seam: SeamTransform } | null;
  readonly operation: Operation;
  /** The request named more than a model that the provider may not know. */
  readonly namesMore?: boolean;
  readonly requestId: string;
  readonly maskBytes: (bytes: Buffer) => Buffer;
  readonly wallClockMs: () => number;
  /** How errors are told apart; null = by status alone. */
  readonly classify: Classify | null;
}

/** Which reader an answer gets, by its status and kind. */
export function chooseReader(host: AnswerHost, options: ReaderOptions): AnswerReader {
  const { status } = host;
  if (hasForeignTransferCoding(host.headers)) {
    const reason = 'answer with an unknown transfer coding';
    return new FailedAnswerReader(host, { result: 'net_err', status, reason });
  }
  if (options.classify !== null && status >= 400) return classifiedReader(host, options, options.classify);
  if (status >= 300 && status < 400) return new FailedAnswerReader(host, failure(host, 'net_err', options));
  if (status === 429) return new FailedAnswerReader(host, failure(host, '429', options));
  if (status === 402) return new FailedAnswerReader(host, failure(host, '402', options));
  if (status >= 500) return new FailedAnswerReader(host, failure(host, '5xx', options));
  if (status >= 400) {
    // The client has the head of a 200 already.
    if (options.continuation?.answer.begun === true)
      return new FailedAnswerReader(host, failure(host, '4xx', options));
    const { maskBytes, operation, requestId } = options;
    const reader = (isDecoded: boolean, unreadable = false) =>
      new ClientErrorReader(host, maskBytes, isDecoded, operation.form, requestId, unreadable);
    const coding = contentCoding(host.headers);
    // A 4xx speaks of the request, whatever nobody can read in it.
    if (coding !== null && !canDecode(coding)) return reader(false, maskBytes !== nothingMasked);
    return decoded(host, true, reader);
  }
  return successReader(host, options);
}

function classifiedReader(host: AnswerHost, options: ReaderOptions, classify: Classify): AnswerReader {
  const judge = new ErrorJudge(host, { ...options, classify });
  const coding = contentCoding(host.headers);
  // Trap: a coding that nobody can read is no reason to blame the wrong side; the status still tells.
  if (coding !== null && !canDecode(coding)) return new ClassifiedErrorReader(host, judge, 'unknown');
  return decoded(
    host,
    true,
    (isDecoded) => new ClassifiedErrorReader(host, judge, isDecoded ? 'decoded' : 'none'),
  );
}

function failure(host: AnswerHost, result: AttemptResult, options: ReaderOptions): AttemptFailure {
  const asked = retryAfterMs((name) => headerValue(host.headers, name), options.wallClockMs);
  const { status } = host;
  return {
    result,
    status,
    reason: `returned ${status}`,
    ...(asked === undefined ? {} : { retryAfterMs: asked }),
  };
}

function successReader(host: AnswerHost, options: ReaderOptions): AnswerReader {
  if (host.status === 204 || host.status === 205) return readerOf('empty', host, options);
  const kind = kindByContentType(host.headers);
  if (kind !== null) return readerOf(kind, host, options);
  return decoded(host, true, (isDecoded) => {
    return new SniffingReader(
      (sniffed) => readerOf(sniffed, host, options, { isDecoded, sniffed: true }),
      (broken) => host.fail(broken),
    );
  });
}

function readerOf(
  kind: AnswerKind | 'empty',
  host: AnswerHost,
  options: ReaderOptions,
  origin = { isDecoded: false, sniffed: false },
): AnswerReader {
  const transforming = host.transforming || host.sink.rewrites;
  const { classify, operation } = options;
  const isChat = operation.name === 'chat';
  const judge = classify === null ? null : new ErrorJudge(host, { ...options, classify });
  const meaning = meaningIn(operation);
  const barrier = options.barrier && meaning !== null;
  const { continuation } = options;
  const continuing = continuation?.answer.begun === true;
  if (kind !== 'sse' && continuing) {
    const reason = 'returned no event stream to go on with';
    return new FailedAnswerReader(host, { result: '5xx', status: host.status, reason });
  }
  const wrap = (mustRead: boolean, make: (isDecoded: boolean) => AnswerReader) =>
    origin.isDecoded ? make(true) : decoded(host, mustRead, make);
  switch (kind) {
    case 'sse':
      if (isChat && !options.clientWantsStream)
        return wrap(true, (isDecoded) => new JoinAnswerReader(host, judge, barrier, isDecoded));
      return wrap(transforming || barrier || continuation !== null, (isDecoded) => {
        const opaque = !isDecoded && contentCoding(host.headers) !== null;
        const contentType = origin.sniffed ? { contentType: 'text/event-stream' } : {};
        const form = new StreamForm(operation.form, options.requestId);
        const mask = options.maskBytes;
        const errorsFail = !opaque && failureOf(operation) !== null;
        const stream = () =>
          continuation !== null
            ? new ContinuableReader(host, { ...continuation, mask, ...contentType })
            : new StreamAnswerReader(host, {
                decoded: isDecoded,
                opaque,
                form,
                errorsFail,
                mask,
                ...contentType,
              });
        return barrier || continuing
          ? new BarrierReader(host, stream, judge, meaning ?? undefined)
          : stream();
      });
    case 'json':
      return wrap(transforming, (isDecoded) => {
        const inspected = isDecoded || contentCoding(host.headers) === null;
        const contentType = origin.sniffed ? 'application/json' : undefined;
        const isFailure = failureOf(operation) ?? undefined;
        return new JsonAnswerReader(host, { inspected, decoded: isDecoded, judge, contentType, isFailure });
      });
    case 'empty':
      return emptyReader(host, options);
    case 'other':
      if (!isChat) return new PipeAnswerReader(host, origin.isDecoded);
      return new FailedAnswerReader(host, {
        result: '5xx',
        status: host.status,
        reason: 'returned neither JSON nor an event stream',
      });
  }
}

/** An answer without a byte: fine for a 204 and for a stream, no JSON for all else. */
function emptyReader(host: AnswerHost, options: ReaderOptions): AnswerReader {
  if (host.status === 204 || host.status === 205) return new EmptyAnswerReader(host);
  if (options.streamAsked) return new StreamAnswerReader(host, { decoded: false, opaque: true });
  if (options.operation.name !== 'chat') return new PipeAnswerReader(host, false);
  return new JsonAnswerReader(host, { inspected: true, decoded: false, judge: null });
}

/** The reader behind a decoder where the body is coded and must be read. */
function decoded(
  host: AnswerHost,
  mustRead: boolean,
  make: (isDecoded: boolean) => AnswerReader,
): AnswerReader {
  const coding = contentCoding(host.headers);
  if (coding === null || !mustRead) return make(false);
  if (!canDecode(coding)) {
    return new FailedAnswerReader(host, {
      result: 'net_err',
      status: host.status,
      reason: 'answer with an unknown content coding',
    });
  }
  return new DecodingReader(
    make(true),
    coding,
    host.status,
    () => host.resume(),
    (error) => host.crashed(error),
  );
}
