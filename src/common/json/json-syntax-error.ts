/** The bytes are no JSON of the kind that was asked for. Its text is ours: nothing of the body is ever in it. */
export class JsonSyntaxError extends Error {
  /**
   * @param reason short, such as `unexpected end`
   * @param offset of the byte in the body (a BOM counts)
   */
  constructor(
    readonly reason: string,
    readonly offset: number,
  ) {
    super(`invalid JSON at byte ${offset}: ${reason}`);
    this.name = 'JsonSyntaxError';
  }
}

/** They may be JSON, but more deeply nested, or of more members, than is read here. */
export class JsonLimitError extends JsonSyntaxError {}
