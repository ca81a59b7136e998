import { FormSyntaxError } from './form-syntax-error.js';
import { headerParameters } from '../http/header-parameters.js';
import { HEADER_NAME } from '../http/header-syntax.js';
import { isUtf8, saysOtherCharset } from '../http/media-type.js';

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
    const boundary = headerParameters(contentType, 'multipart/form-data')?.get('boundary');
    // RFC 2046 §5.1.1
    if (boundary === undefined || !/^[0-9A-Za-z'()+_,./:=? -]{0,69}[0-9A-Za-z'()+_,./:=?-]$/.test(boundary))
      throw new FormSyntaxError('has no valid boundary in its content type, or two');
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
  // Before it may stand any text (RFC 2046 calls it the preamble), which nobody reads: the delimiter is not in it.
  if (at !== 0 && !startsAt(bytes, CRLF, at - CRLF.length)) throw new FormSyntaxError(NO_LINE);
  for (;;) {
    at += delimiter.length;
    if (startsAt(bytes, CLOSING, at)) {
      if (bytes.indexOf(delimiter, at) < 0) return values;
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
    const name = fieldName(bytes.toString('utf8', at, headEnd));
    if (name === null) throw new FormSyntaxError('has a part whose head two readers could read differently');
    if (name === '_charset_' && !isUtf8(bytes.toString('latin1', start, end)))
      throw new FormSyntaxError('has a field "_charset_" that is not UTF-8');
    if (name === 'model' && end - start > LONGEST_MODEL_BYTES)
      throw new FormSyntaxError(`has a field "model" of over ${LONGEST_MODEL_BYTES} bytes`);
    if (name === 'model') values.push({ start, end });
    at = next;
  }
}

function startsAt(bytes: Buffer, wanted: Buffer, at: number): boolean {
  return (
    at >= 0 &&
    bytes.length >= at + wanted.length &&
    bytes.compare(wanted, 0, wanted.length, at, at + wanted.length) === 0
  );
}

/** The `name` of a part, '' where it has none; null where its head is doubtful. */
function fieldName(head: string): string | null {
  let name: string | null = null;
  let otherCharset = false;
  for (const line of head.split('\r\n').slice(1)) {
    // A lone line end, or a line that goes on in the next one.
    if (/[\r\n\0]|^[ \t]/.test(line)) return null;
    const colon = line.indexOf(':');
    // Trap: `trim` would take off a byte order mark, and make a header of what is none.
    if (!HEADER_NAME.test(line.slice(0, Math.max(0, colon)))) return null;
    const field = line.slice(0, colon).toLowerCase();
    if (field === 'content-type') otherCharset = saysOtherCharset(line.slice(colon + 1));
    // Deprecated (RFC 7578 §4.7): some readers decode such a part, most take it as it is.
    if (field === 'content-transfer-encoding' && !/^(7bit|8bit|binary)$/i.test(line.slice(colon + 1).trim()))
      return null;
    if (field !== 'content-disposition') continue;
    const parameters = headerParameters(line.slice(colon + 1), 'form-data');
    if (parameters === null || name !== null || isContinued(parameters)) return null;
    name = parameters.get('name') ?? '';
    // Some readers take a backslash for an escape and some do not.
    if (name.includes('\\') || isNearlyModel(name)) return null;
  }
  return otherCharset && name === 'model' ? null : (name ?? '');
}

/** `name*=`, `name*0=`, `name*0*=`: RFC 2231, which some readers honour. */
function isContinued(parameters: ReadonlyMap<string, string>): boolean {
  for (const key of parameters.keys()) if (key.startsWith('name*')) return true;
  return false;
}

/** Some readers ignore the case of a name, take off blanks and single quotes, read `model[]` as a list, or decode RFC 2047. */
function isNearlyModel(name: string): boolean {
  return name !== 'model' && (name.includes('=?') || name.replace(/[^a-z]/gi, '').toLowerCase() === 'model');
}
