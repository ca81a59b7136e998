import type { IncomingMessage } from 'node:http';
import {
  bodyTooLarge,
  invalidBodyCoding,
  invalidJson,
  unsupportedCoding,
} from '../common/errors/catalogue.js';
import { GatewayError } from '../common/errors/gateway-error.js';
import { canDecode, createDecoder, type Decoder } from '../common/http/content-coding.js';
import { JsonSyntaxError } from '../common/json/json-syntax-error.js';
import type { BodyParts, RequestBody } from './request-body.js';

export type BodyResult = RequestBody | { readonly error: GatewayError };

/**
 * Reads a request body, decoded where it is coded and held to the limit, into its parts. A body that is refused is
 * read away, so that the client gets to read the answer. `done` is not called when the client leaves before the end.
 */
export class BodyReader {
  #decoder: Decoder | null = null;
  #bytes = 0;
  #arrived = 0;
  /** What a coding adds to a body that it cannot shorten stays well below. */
  readonly #codedLimitBytes: number;
  #over = false;

  constructor(
    private readonly request: IncomingMessage,
    private readonly limitBytes: number,
    private readonly parts: BodyParts,
    private readonly done: (result: BodyResult) => void,
  ) {
    this.#codedLimitBytes = limitBytes + limitBytes / 100 + 4096;
  }

  start(): void {
    const { request } = this;
    const coding = request.headers['content-encoding']?.trim().toLowerCase() ?? 'identity';
    const plain = coding === 'identity' || coding === '';
    const length = Number(request.headers['content-length'] ?? 0);
    if (!plain && !canDecode(coding)) this.refuse(unsupportedCoding());
    else if (length > (plain ? this.limitBytes : this.#codedLimitBytes))
      this.refuse(bodyTooLarge(this.limitBytes));
    request.on('data', (chunk: Buffer) => {
      if (this.#over) return;
      this.#arrived += chunk.length;
      // Trap: a coded body can be endless and yet decode to nothing.
      if (this.#arrived > this.#codedLimitBytes) this.refuse(bodyTooLarge(this.limitBytes));
      else if (plain) this.#take(chunk);
      else this.#decode(chunk, coding);
    });
    request.on('end', () => {
      if (this.#decoder === null) this.#finish();
      else this.#decoder.end();
    });
    request.on('error', () => this.#abandon());
    request.on('close', () => {
      if (!request.complete) this.#abandon();
    });
  }

  #decode(chunk: Buffer, coding: string): void {
    if (this.#decoder === null) {
      const decoder = createDecoder(coding, chunk);
      this.#decoder = decoder;
      decoder.on('data', (piece: Buffer) => this.#take(piece));
      decoder.on('end', () => {
        if (decoder.bytesWritten < this.#arrived) this.refuse(invalidBodyCoding(coding));
        else this.#finish();
      });
      decoder.on('error', () => this.refuse(invalidBodyCoding(coding)));
      decoder.on('drain', () => this.request.resume());
    }
    if (!this.#decoder.write(chunk)) this.request.pause();
  }

  #take(chunk: Buffer): void {
    if (this.#over) return;
    this.#bytes += chunk.length;
    if (this.#bytes > this.limitBytes) {
      this.refuse(bodyTooLarge(this.limitBytes));
      return;
    }
    try {
      this.parts.push(chunk);
    } catch (error) {
      this.refuse(syntaxError(error));
    }
  }

  #finish(): void {
    if (this.#over) return;
    let body: RequestBody;
    try {
      body = this.parts.end();
    } catch (error) {
      this.refuse(syntaxError(error));
      return;
    }
    this.#over = true;
    this.done(body);
  }

  /** As they came, before they are decoded. */
  get arrivedBytes(): number {
    return this.#arrived;
  }

  /** True once the result is given, or the client has left. */
  get over(): boolean {
    return this.#over;
  }

  /** Ends the reading with this answer; nothing where the body is already complete or refused. */
  refuse(error: GatewayError): void {
    if (this.#over) return;
    this.#over = true;
    this.#decoder?.destroy();
    this.request.resume();
    this.done({ error });
  }

  #abandon(): void {
    this.#over = true;
    this.#decoder?.destroy();
  }
}

function syntaxError(error: unknown): GatewayError {
  if (error instanceof GatewayError) return error;
  if (!(error instanceof JsonSyntaxError)) throw error;
  return invalidJson(`${error.reason} at byte ${error.offset}`);
}
