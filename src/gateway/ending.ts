import type { AttemptOutcome } from './attempt-outcome.js';
import type { CompiledTarget } from './compiled-target.js';

/** How an exchange ended, for `onFinish` and the log. */
export interface Ending {
  /** Of the attempt that answered, or was under way when the client left. */
  readonly outcome: AttemptOutcome | null;
  readonly target: CompiledTarget | null;
  readonly status: number;
}
