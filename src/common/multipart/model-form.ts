import { FormSyntaxError } from './form-syntax-error.js';
import { isUtf8 } from '../http/media-type.js';
import { formBoundary, partName } from './part-head.js';

/** A byte range of the body: the value of one field. */
interface Range {
  readonly start: number;
  readonly end: number;
}

const CRLF = Buffer.from('\r\n');
const HEAD_END = Buffer.from('\r\n\r\n');
/** More than any head of a part needs. */
const HEAD_LIMIT_BYTES = 16 * 1024;
const LONGEST_MODEL_BYTES = 4096;
const CLOSING = Buffer.from('--');
const CUT = 'is cut off: its closing boundary is missing';
const NO_LINE =
  'holds its boundary elsewhere than on a line of its own, or ends lines with something else than CRLF';

/**
 * A multipart/form-data body (RFC 7578) of which one field is understood: `model`. All other bytes are kept as they came.
 * What a provider could read in another way than this reader is no form: else a second `model` could be hidden in it.
 * Immutable; owned by one exchange.
 */
export class ModelForm {
  private constructor(
    private readonly bytes: Buffer,
    private readonly values: readonly Range[],
  ) {}

  /** @throws FormSyntaxError where there is no `model` field, or the body is cut off or doubtful */
  static parse(bytes: Buffer, contentType: string): ModelForm {
    const boundary = formBoundary(contentType);
    if (boundary === null)
      throw new FormSyntaxError(
        'needs the content type multipart/form-data with one boundary of letters, digits and + _ . - (at most 70), and nothing else',
      );
    const values = modelValues(bytes, Buffer.from(`--${boundary}`, 'latin1'));
    if (values.length === 0) throw new FormSyntaxError('has no field "model"');
    return new ModelForm(bytes, values);
  }

  /** As in JSON the last one counts where it stands twice. */
  get model(): string {
    const { start, end } = this.values.at(-1) as Range;
    return this.bytes.toString('utf8', start, end);
  }

  /** The body with this name in place of the client's, wherever that stood. */
  withModel(name: string): Buffer[] {
    const parts: Buffer[] = [];
    let at = 0;
    for (const { start, end } of this.values) {
      parts.push(this.bytes.subarray(at, start), Buffer.from(name));
      at = end;
    }
    parts.push(this.bytes.subarray(at));
    return parts;
  }
}

/** The values of the fields named `model`. @throws FormSyntaxError where the body is no sound form */
function modelValues(bytes: Buffer, delimiter: Buffer): Range[] {
  const values: Range[] = [];
  let at = bytes.indexOf(delimiter);
  if (at < 0) throw new FormSyntaxError('does not hold the boundary of its content type');
  // Trap: RFC 2046 allows any text here and behind the end, and some readers look for a head of a part in it.
  if (!isEmptyLines(bytes, 0, at)) throw new FormSyntaxError('begins with something else than its boundary');
  for (;;) {
    at += delimiter.length;
    if (startsAt(bytes, CLOSING, at)) {
      if (isEmptyLines(bytes, at + CLOSING.length, bytes.length)) return values;
      throw new FormSyntaxError('goes on behind its closing boundary');
    }
    if (at + CRLF.length > bytes.length) throw new FormSyntaxError(CUT);
    if (!startsAt(bytes, CRLF, at)) throw new FormSyntaxError(NO_LINE);
    const next = bytes.indexOf(delimiter, at);
    // The empty line of a part without a head follows at once.
    const headEnd = bytes.indexOf(HEAD_END, at);
    if (next < 0) throw new FormSyntaxError(CUT);
    const start = headEnd + HEAD_END.length;
    const end = next - CRLF.length;
    // None stands within a head.
    if (headEnd < 0 || end < start)
      throw new FormSyntaxError('has a part whose head does not end with an empty line');
    if (headEnd - at > HEAD_LIMIT_BYTES) throw new FormSyntaxError('has a part with a head over 16 KiB');
    if (!startsAt(bytes, CRLF, end)) throw new FormSyntaxError(NO_LINE);
    const name = partName(bytes.toString('utf8', at, headEnd));
    if (name === null) throw new FormSyntaxError('has a part whose head two readers could read differently');
    if (name === '_charset_' && !isUtf8(bytes.toString('latin1', start, end)))
      throw new FormSyntaxError('has a field "_charset_" that is not UTF-8');
    if (name === 'model' && end - start > LONGEST_MODEL_BYTES)
      throw new FormSyntaxError(`has a field "model" of over ${LONGEST_MODEL_BYTES} bytes`);
    if (name === 'model') values.push({ start, end });
    at = next;
  }
}

/** Nothing but whole line ends. */
function isEmptyLines(bytes: Buffer, from: number, to: number): boolean {
  for (let at = from; at < to; at += CRLF.length)
    if (at + CRLF.length > to || !startsAt(bytes, CRLF, at)) return false;
  return true;
}

function startsAt(bytes: Buffer, wanted: Buffer, at: number): boolean {
  return (
    at >= 0 &&
    bytes.length >= at + wanted.length &&
    bytes.compare(wanted, 0, wanted.length, at, at + wanted.length) === 0
  );
}
