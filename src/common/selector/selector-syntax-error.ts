/** A text is no label selector. */
export class SelectorSyntaxError extends Error {
  constructor(
    /** Of the first character that is wrong, counted from 1; one beyond the end where something is missing. */
    readonly position: number,
    readonly reason: string,
  ) {
    super(`position ${position}: ${reason}`);
    this.name = 'SelectorSyntaxError';
  }
}
