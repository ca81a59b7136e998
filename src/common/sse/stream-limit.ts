/** Beyond this nobody asks for so many answers at once; each one that is read has state of its own. */
export const CHOICE_LIMIT = 1024;

/** A stream is more than what may be held in memory: it counts as broken. `reason` is ours and holds nothing of it. */
export class StreamLimitError extends Error {
  /** `asked` = the client asked for so much: no fault of who gave it. */
  constructor(
    readonly reason: string,
    message = reason,
    readonly asked = false,
  ) {
    super(message);
    this.name = 'StreamLimitError';
  }
}

/** @throws StreamLimitError where one more of these would be too many */
export function checkRoom(held: { readonly size: number }, what: string): void {
  if (held.size < CHOICE_LIMIT) return;
  const reason = `the stream has more than ${CHOICE_LIMIT} ${what}`;
  throw new StreamLimitError(reason, reason, what === 'choices');
}
