import type { HeldAnswer } from './answer/passable-answer.js';
import type { Attempt, AttemptFailure, AttemptResult } from '../contracts/exchange.js';

/** What came of one attempt. */
export interface AttemptOutcome {
  readonly result: AttemptResult;
  /** Present where the attempt failed. */
  readonly failure?: AttemptFailure;
  /** Present where another upstream may be tried. */
  readonly attempt?: Attempt;
  /** True when something was sent to the client, which then has all it will get. */
  readonly answered: boolean;
  /** True when a part of an answer was sent and another upstream is to go on with it. */
  readonly suspended?: boolean;
  /** True where it broke behind the end of the answer, so that the client misses nothing. */
  readonly complete?: boolean;
  /** Status sent to the client, or 0. */
  readonly status: number;
  /** Time to the first byte of the body; absent where none came. */
  readonly firstByteMs?: number;
  /** An error of this side that is the client's answer, though the provider was asked: thrown once the attempt is booked. */
  readonly crash?: { readonly error: unknown };
  /** An error that may be sent to the client if nothing better comes. */
  readonly held?: HeldAnswer;
}

/** Of an answer that was given to the network, as far as that took it. */
export function resultGiven(result: 'ok' | '4xx', refused: 'client_gone' | Error | null): AttemptResult {
  if (refused === null) return result;
  return refused === 'client_gone' ? 'cancelled' : 'net_err';
}
