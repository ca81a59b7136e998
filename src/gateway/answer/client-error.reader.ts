import { ChunkList } from '../../common/bytes/chunk-list.js';
import { errorBytes, type ErrorForm } from '../../common/errors/error-form.js';
import { upstreamErrorTooLarge, upstreamErrorUnreadable } from '../../common/errors/catalogue.js';
import type { GatewayError } from '../../common/errors/gateway-error.js';
import type { AttemptFailure } from '../../contracts/exchange.js';
import type { AnswerHost, AnswerReader } from './answer-reader.js';

const LIMIT_BYTES = 1024 * 1024;

/** A 4xx that passes to the client: read whole, our keys masked in it, sent with its status and headers. */
export class ClientErrorReader implements AnswerReader {
  readonly #held = new ChunkList();
  #over = false;

  constructor(
    private readonly host: AnswerHost,
    private readonly mask: (bytes: Buffer) => Buffer,
    /** The body was decoded on its way here, so its coding is no longer true. */
    private readonly decoded: boolean,
    /** For what is said in place of an answer that is too large. */
    private readonly form: ErrorForm = 'openai',
    private readonly requestId = '',
    /** In a coding that nobody can read our keys could not be masked. */
    private readonly unreadable = false,
  ) {}

  data(chunk: Buffer): boolean {
    if (this.#over) return true;
    this.#held.push(chunk);
    if (this.#held.length <= LIMIT_BYTES) return true;
    this.#held.take();
    this.#replace(upstreamErrorTooLarge(this.host.status));
    return true;
  }

  end(): void {
    if (this.#over) return;
    if (this.unreadable) {
      this.#replace(upstreamErrorUnreadable(this.host.status));
      return;
    }
    const body = this.#held.concat();
    const masked = this.mask(body);
    this.#send(masked, this.decoded || masked !== body);
  }

  broken(failure: AttemptFailure): void {
    if (!this.#over) this.host.fail(failure);
  }

  #replace(error: GatewayError): void {
    const body = errorBytes(error, this.form, this.requestId);
    this.#send(body, true, 'application/json; charset=utf-8');
  }

  #send(body: Buffer, bodyChanged: boolean, contentType?: string): void {
    this.#over = true;
    this.host.commit({
      kind: 'other',
      bodyChanged,
      contentLength: body.length,
      ...(contentType ? { contentType } : {}),
    });
    this.host.sink.end(body);
    this.host.finish('4xx');
  }
}
