import type { GatewayError } from '../../src/common/errors/gateway-error.js';
import type { ResponseSink } from '../../src/gateway/response-sink.js';

/** Keeps what an exchange says to its client. `room` = how many writes are taken before a pause is asked for. */
export class RecordingSink implements ResponseSink {
  rewrites = false;
  refused: 'client_gone' | Error | null = null;
  onDrain: (() => void) | null = null;
  status = 0;
  headers: string[] = [];
  readonly calls: string[] = [];
  readonly pieces: Buffer[] = [];
  room = Infinity;

  head(status: number, headers: string[]): void {
    this.calls.push('head');
    this.status = status;
    this.headers = headers;
  }

  flush(): void {
    this.calls.push('flush');
  }

  write(bytes: Buffer | readonly Buffer[]): boolean {
    this.calls.push('write');
    this.#keep(bytes);
    return --this.room > 0;
  }

  end(bytes?: Buffer | readonly Buffer[]): void {
    this.calls.push('end');
    if (bytes !== undefined) this.#keep(bytes);
  }

  endInterrupted(bytes: Buffer): void {
    this.calls.push('endInterrupted');
    this.#keep(bytes);
  }

  cut(): void {
    this.calls.push('cut');
  }

  error(error: GatewayError): void {
    this.calls.push(`error ${error.code}`);
  }

  close(): void {
    if (this.ending === undefined && !this.calls.some((call) => call.startsWith('error')))
      this.calls.push('close');
  }

  /** The client takes bytes again. */
  drain(room = Infinity): void {
    this.room = room;
    this.onDrain?.();
  }

  get text(): string {
    return Buffer.concat(this.pieces).toString();
  }

  header(name: string): string | undefined {
    for (let i = 0; i < this.headers.length; i += 2) if (this.headers[i] === name) return this.headers[i + 1];
    return undefined;
  }

  /** How the answer ended, if it did. */
  get ending(): string | undefined {
    return this.calls.findLast((call) => call === 'end' || call === 'endInterrupted' || call === 'cut');
  }

  #keep(bytes: Buffer | readonly Buffer[]): void {
    this.pieces.push(...(Buffer.isBuffer(bytes) ? [bytes] : bytes));
  }
}
