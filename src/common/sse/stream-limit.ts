/** Beyond this nobody asks for so many answers at once; each one that is read has state of its own. */
export const CHOICE_LIMIT = 1024;

/** A stream is more than what may be held in memory: it counts as broken. `reason` is ours and holds nothing of it. */
export class StreamLimitError extends Error {
  constructor(
    readonly reason: string,
    message = reason,
  ) {
    super(message);
    this.name = 'StreamLimitError';
  }
}

/** @throws StreamLimitError where one more of these would be too many */
export function checkRoom(held: { readonly size: number }, what: string): void {
  if (held.size >= CHOICE_LIMIT)
    throw new StreamLimitError(`the stream has more than ${CHOICE_LIMIT} ${what}`);
}
