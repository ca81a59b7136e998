import type { JsonDocument } from '../../src/common/json/json-document.js';
import type { BreakCause } from '../../src/common/errors/error-form.js';
import type { UpstreamHeaders } from '../../src/common/http/response-headers.js';
import type { AttemptFailure } from '../../src/contracts/exchange.js';
import type { StreamTransform } from '../../src/contracts/stream.js';
import type { AnswerHost, CommitOptions } from '../../src/gateway/answer/answer-reader.js';
import { StreamPipeline } from '../../src/gateway/stream-pipeline.js';
import { RecordingSink } from './recording-sink.js';

/** The attempt's side of an answer, for one reader alone: keeps every verdict, in order. */
export class RecordingHost implements AnswerHost {
  readonly sink = new RecordingSink();
  readonly verdicts: string[] = [];
  commitOptions: CommitOptions | null = null;
  failure: AttemptFailure | null = null;
  resumes = 0;
  tokens = 0;
  phase: string | undefined;
  continuable = true;
  breakCause: BreakCause = 'upstream';
  #pipeline: StreamPipeline | null = null;

  constructor(
    readonly status = 200,
    readonly headers: UpstreamHeaders = {},
    private readonly transforms: readonly StreamTransform[] = [],
  ) {}

  get committed(): boolean {
    return this.commitOptions !== null;
  }

  pipeline(): StreamPipeline {
    return (this.#pipeline ??= new StreamPipeline(this.transforms, []));
  }

  get transforming(): boolean {
    return this.pipeline().transforming;
  }

  whole(answer: JsonDocument): void {
    this.pipeline().whole(answer);
  }

  piece(bytes: Buffer): void {
    this.pipeline().piece(bytes);
  }

  commit(options: CommitOptions): void {
    this.verdicts.push('commit');
    this.commitOptions = options;
    this.sink.head(this.status, []);
  }

  finish(result: 'ok' | '4xx'): void {
    this.verdicts.push(result);
  }

  fail(failure: AttemptFailure): void {
    this.verdicts.push(`fail ${failure.result}`);
    this.failure = failure;
  }

  interrupted(failure: AttemptFailure, phase?: string): void {
    this.phase = phase;
    this.verdicts.push(`interrupted ${failure.result}`);
    this.failure = failure;
  }

  crashed(error: unknown): void {
    this.verdicts.push(`crashed ${String(error)}`);
  }

  suspended(failure: AttemptFailure, phase: string): void {
    this.verdicts.push(`suspended ${failure.result}`);
    this.failure = failure;
    this.phase = phase;
  }

  tokenSeen(): void {
    this.tokens++;
  }

  resume(): void {
    this.resumes++;
  }
}
