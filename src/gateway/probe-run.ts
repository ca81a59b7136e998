import { ChunkList } from '../common/bytes/chunk-list.js';
import { JsonDocument } from '../common/json/json-document.js';
import type { UpstreamHeaders } from '../common/http/response-headers.js';
import { type AnswerListener, UpstreamCall, type UpstreamRequest } from '../upstreams/upstream-call.js';
import type { ProviderClient } from '../upstreams/provider-client.js';
import { kindByContentType } from './answer/answer-kind.js';
import { isErrorAnswer } from './answer/json-answer.reader.js';
import { type AnswerKind, kindByFirstByte } from './answer/sniffing.reader.js';

const JSON_LIMIT_BYTES = 1024 * 1024;

/**
 * One background probe on the wire, judged by the table for requests: 2xx with a first byte of an event stream, or with
 * a whole JSON answer that is no error. The rest of the answer is aborted.
 */
export class ProbeRun implements AnswerListener {
  #call: UpstreamCall | null = null;
  #kind: AnswerKind | null = null;
  readonly #held = new ChunkList();
  #verdict: boolean | null = null;
  #over = false;
  #resolve: (alive: boolean) => void = () => {};

  constructor(
    private readonly client: ProviderClient,
    private readonly request: UpstreamRequest,
    private readonly timeoutMs: number,
  ) {}

  run(signal: AbortSignal): Promise<boolean> {
    return new Promise((resolve) => {
      this.#resolve = resolve;
      const timer = setTimeout(() => this.#judge(false), this.timeoutMs);
      const aborted = () => this.#judge(false);
      signal.addEventListener('abort', aborted);
      this.#call = new UpstreamCall(this.client, this.request, this, () => {
        clearTimeout(timer);
        signal.removeEventListener('abort', aborted);
        // Only now: the next probe must not meet this one at the provider.
        this.#over = true;
        this.#settle();
      });
      try {
        this.#call.start();
      } catch {
        this.#judge(false);
      }
      if (signal.aborted) aborted();
    });
  }

  onHead(status: number, headers: UpstreamHeaders): void {
    if (status < 200 || status > 299) this.#judge(false);
    this.#kind = kindByContentType(headers);
    if (this.#kind === 'other') this.#judge(false);
  }

  onData(chunk: Buffer): boolean {
    if (this.#kind === 'sse') {
      this.#judge(true);
      return true;
    }
    this.#held.push(chunk);
    if (this.#kind === null) this.#sniff(chunk);
    if (this.#held.length > JSON_LIMIT_BYTES) this.#judge(true);
    return true;
  }

  onEnd(): void {
    const document = JsonDocument.tryParse(this.#held.chunks);
    this.#judge(document !== undefined && !isErrorAnswer(document));
  }

  onFailure(): void {
    this.#judge(false);
  }

  #sniff(chunk: Buffer): void {
    const byte = chunk.find((code) => code > 0x20);
    if (byte === undefined) return;
    this.#kind = kindByFirstByte(byte);
    if (this.#kind !== 'json') this.#judge(this.#kind === 'sse');
  }

  #judge(alive: boolean): void {
    if (this.#verdict !== null) return;
    this.#verdict = alive;
    this.#call?.abort();
    this.#settle();
  }

  #settle(): void {
    if (this.#over && this.#verdict !== null) this.#resolve(this.#verdict);
  }
}
