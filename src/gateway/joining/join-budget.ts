import { StreamLimitError } from '../../common/sse/stream-limit.js';

/** Members, tool calls and lists that are held one by one; each costs some hundred bytes beside its own. */
export const HELD_LIMIT = 100_000;
/** An object that is merged is read once more at each level of its depth. */
export const WALKED_LIMIT_BYTES = 256 * 1024 * 1024;

/** What the joining of one answer may cost. Lives as long as the answer, and is never given back to. */
export class JoinBudget {
  #held = 0;
  #walkedBytes = 0;

  /** @throws StreamLimitError where one more would be too many */
  hold(): void {
    if (++this.#held > HELD_LIMIT)
      throw new StreamLimitError(`the stream has more than ${HELD_LIMIT} members to join`);
  }

  /** @throws StreamLimitError where nested objects are too large to be merged again and again */
  walk(bytes: number): void {
    this.#walkedBytes += bytes;
    if (this.#walkedBytes > WALKED_LIMIT_BYTES)
      throw new StreamLimitError('the nested objects of the stream are too large to join');
  }
}
