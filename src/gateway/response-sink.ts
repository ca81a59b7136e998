import type { BreakCause } from '../common/errors/error-form.js';
import type { GatewayError } from '../common/errors/gateway-error.js';

/** Where an answer goes. The HTTP layer's side of an exchange; nothing but `error` is made to throw. */
export interface ResponseSink {
  /** What is given may be sent in another form, so that coded bodies must be decoded before. */
  readonly rewrites: boolean;
  /** Sends the head. `headers` is a flat list of names and values; the sink adds those of the edge. */
  head(status: number, headers: string[]): void;
  /** Makes sure that the head is on its way although no body byte is there yet. */
  flush(): void;
  /** False asks for a pause until `onDrain`. */
  write(bytes: Buffer | readonly Buffer[]): boolean;
  /** The whole answer has been given. */
  end(bytes?: Buffer | readonly Buffer[]): void;
  /** Says with these last bytes that the answer is incomplete, then closes the connection. */
  endInterrupted(bytes: Buffer): void;
  /** Breaks the connection, so that nobody takes what came for a whole answer. */
  cut(cause: BreakCause): void;
  /** Why the network does not take what was given; null as far as nothing is known of it. */
  readonly refused: 'client_gone' | Error | null;
  /**
   * An answer of our own; only before a head was sent.
   * @throws what keeps it from being written; the client has an answer even so
   */
  error(error: GatewayError, headers: string[]): void;
  /**
   * The last resort, where something failed on this side: an answer that has no end yet gets one, a plain 500 before the head,
   * a broken connection behind it. Never throws.
   */
  close(): void;
  set onDrain(listener: (() => void) | null);
}
