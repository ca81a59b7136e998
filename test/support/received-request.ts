/** One request as it reached a scripted upstream, byte for byte. */
export class ReceivedRequest {
  readonly #closed = Promise.withResolvers<void>();
  #answered = false;
  #over = false;
  #chunks: Buffer[] = [];

  constructor(
    /** Number of the connection it came on, from 0. */
    readonly connection: number,
    readonly method: string,
    /** Path and query. */
    readonly target: string,
    readonly headerLines: readonly (readonly [name: string, value: string])[],
  ) {}

  /** Settles when the answer is complete or the connection is gone. */
  get closed(): Promise<void> {
    return this.#closed.promise;
  }

  /** The connection ended before the answer was complete. */
  get aborted(): boolean {
    return this.#over && !this.#answered;
  }

  get over(): boolean {
    return this.#over;
  }

  get done(): boolean {
    return this.#answered;
  }

  get body(): Buffer {
    return Buffer.concat(this.#chunks);
  }

  get text(): string {
    return this.body.toString('utf8');
  }

  get json(): Record<string, unknown> {
    return JSON.parse(this.text) as Record<string, unknown>;
  }

  /** Values of the header joined by a comma; undefined where it did not come. */
  header(name: string): string | undefined {
    const values = this.headerLines.filter(([key]) => key.toLowerCase() === name).map(([, value]) => value);
    return values.length === 0 ? undefined : values.join(', ');
  }

  get headerNames(): string[] {
    return this.headerLines.map(([name]) => name.toLowerCase());
  }

  add(piece: Buffer): void {
    this.#chunks.push(Buffer.from(piece));
  }

  answered(): void {
    this.#answered = true;
    this.finish();
  }

  finish(): void {
    this.#over = true;
    this.#closed.resolve();
  }
}
