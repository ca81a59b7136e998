import { type BreakCause, type ErrorForm, interruptionEvent } from '../../common/errors/error-form.js';

const KEY = Buffer.from('"sequence_number"');
/** Behind the key: a colon, white space, and as many digits as a number has. */
const VALUE_BYTES = 32;

/** How one stream is to be told that it broke. Lives for one answer; sees what was sent, keeps no more than its end. */
export class StreamForm {
  #tail: Buffer = Buffer.alloc(0);
  #sequence = -1;

  constructor(
    private readonly form: ErrorForm,
    private readonly requestId: string,
  ) {}

  /** Whether `sent` wants to see what goes to the client. */
  get watches(): boolean {
    return this.form === 'responses';
  }

  sent(bytes: Buffer): void {
    const both = this.#tail.length === 0 ? bytes : Buffer.concat([this.#tail, bytes]);
    // From the end: only the last number counts. Trap: one that a cut left half is found again with the next bytes.
    const at = both.lastIndexOf(KEY);
    if (at >= 0) this.#read(both, at);
    this.#tail = Buffer.from(both.subarray(Math.max(0, both.length - KEY.length - VALUE_BYTES)));
  }

  interruption(cause: BreakCause): Buffer {
    return interruptionEvent(this.form, this.requestId, this.#sequence + 1, cause);
  }

  #read(bytes: Buffer, at: number): void {
    const start = at + KEY.length;
    const text = bytes.toString('latin1', start, Math.min(bytes.length, start + VALUE_BYTES));
    const [, digits] = /^\s*:\s*(\d{1,15})/.exec(text) ?? [];
    if (digits !== undefined) this.#sequence = Number(digits);
  }
}
