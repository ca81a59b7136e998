import type { CommitOptions } from './answer-reader.js';

/** An error of a provider, read whole and masked, that may be sent to the client if nothing better comes. */
export interface PassableAnswer {
  readonly body: Buffer;
  readonly options: CommitOptions;
  /** What the client is told: the provider's status, or the one that the error names where it came in a 2xx. */
  readonly status: number;
}

/** The same with the head as the client would get it. */
export interface HeldAnswer {
  readonly status: number;
  readonly headers: string[];
  readonly body: Buffer;
}
