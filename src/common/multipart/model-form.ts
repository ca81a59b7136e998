import { headerParameters } from './header-parameters.js';

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

  /** Undefined where there is no whole `model` field, or the body is cut off or doubtful. */
  static parse(bytes: Buffer, contentType: string): ModelForm | undefined {
    const boundary = headerParameters(contentType, 'multipart/form-data')?.get('boundary');
    // RFC 2046 §5.1.1
    if (boundary === undefined || !/^[0-9A-Za-z'()+_,./:=? -]{1,70}$/.test(boundary)) return undefined;
    const values = modelValues(bytes, Buffer.from(`--${boundary}`, 'latin1'));
    return values === undefined || values.length === 0 ? undefined : new ModelForm(bytes, values);
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

/** The values of the fields named `model`; undefined where the body is no sound form. */
function modelValues(bytes: Buffer, delimiter: Buffer): Range[] | undefined {
  const values: Range[] = [];
  let at = bytes.indexOf(delimiter);
  // Nothing but an empty line before the first delimiter.
  if (at !== 0 && !(at === CRLF.length && startsAt(bytes, CRLF, 0))) return undefined;
  for (;;) {
    at += delimiter.length;
    if (startsAt(bytes, Buffer.from('--'), at)) return bytes.indexOf(delimiter, at) < 0 ? values : undefined;
    if (!startsAt(bytes, CRLF, at)) return undefined;
    // The empty line of a part without a head follows at once.
    const headEnd = bytes.indexOf(HEAD_END, at);
    if (headEnd < 0 || headEnd - at > HEAD_LIMIT_BYTES) return undefined;
    const start = headEnd + HEAD_END.length;
    const next = bytes.indexOf(delimiter, at);
    const end = next - CRLF.length;
    // Each delimiter stands on a line of its own, and none within a head.
    if (end < start || !startsAt(bytes, CRLF, end)) return undefined;
    const name = fieldName(bytes.toString('utf8', at, headEnd));
    if (name === null || (name === 'model' && end - start > LONGEST_MODEL_BYTES)) return undefined;
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
  for (const line of head.split('\r\n').slice(1)) {
    // A lone line end, or a line that goes on in the next one.
    if (/[\r\n\0]|^[ \t]/.test(line)) return null;
    const colon = line.indexOf(':');
    if (line.slice(0, colon).trim().toLowerCase() !== 'content-disposition') continue;
    const parameters = headerParameters(line.slice(colon + 1), 'form-data');
    if (parameters === null || name !== null || parameters.has('name*')) return null;
    name = parameters.get('name') ?? '';
    // Some readers take a backslash for an escape and some do not.
    if (name.includes('\\')) return null;
  }
  return name ?? '';
}
