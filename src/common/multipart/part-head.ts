import { HEADER_NAME } from '../http/header-syntax.js';
import { isLikeAscii, saysOtherCharset } from '../http/media-type.js';

/**
 * What could be an escape, a separator, a quote or an assignment to anybody stands nowhere; a slash ends the boundary for some
 * without quotes, and another case makes it another type.
 */
const TYPE =
  /^[ \t]*multipart\/form-data((?:[ \t]*;[ \t]*(?:boundary|charset)=(?:[0-9A-Za-z+_.-]+|"[0-9A-Za-z+_./-]+"))+)(?:[ \t]*;)?[ \t]*$/;
/** RFC 2046 §5.1.1 without what some readers end it at (`:`, `?`, `(`, `,`), split it at (`=`) or take off (a blank, `'`). */
const BOUNDARY = /;[ \t]*boundary="?([^";\s]{1,70})"?(?=[ \t]*(?:;|$))/g;
/** Some readers take the field's name from here; a file's has a point. */
const NAME_IN_TYPE = /name[\d*]*\s*=(?!(?:[\w -]*\.\w+|"[\w -]*\.\w+")[ \t]*(?:;|$))/i;

/** The parameters that somebody writes. No quote in them is escaped, and no backslash stands before one. */
const DISPOSITION =
  /^[ \t]*form-data((?:[ \t]*;[ \t]*(?:(?:name|filename)=(?:[^\s;",=\\]+|"(?:[^"\\]|\\(?!"))*")|filename\*=(?:[!#$%&'()*+.^_`|~0-9a-z-]+|"[!#$%&'()*+.^_`|~0-9a-z-]+")|(?:creation|modification|read)-date="[0-9a-z ,:+-]*"|size=\d+))+)(?:[ \t]*;)?[ \t]*$/i;
const PARAMETER = /;[ \t]*([a-z-]+\*?)=(?:"([^"]*)"|([^\s;"]+))/gi;
/** Some readers end a parameter at a semicolon within quotes. */
const ASSIGNING = /;\s*(?:file)?name\*?\s*=/i;

/**
 * The boundary that every reader takes out of this content type; null where two could take different ones: a form within a
 * part would be another form to one of them.
 */
export function formBoundary(contentType: string): string | null {
  const parameters = TYPE.exec(contentType)?.[1];
  if (parameters === undefined) return null;
  const boundaries = [...parameters.matchAll(BOUNDARY)];
  return boundaries.length === 1 ? (boundaries[0]?.[1] ?? null) : null;
}

/** The `name` of a part, whose head begins with the line end behind its delimiter; null where readers could differ on it. */
export function partName(head: string): string | null {
  let name: string | null = null;
  let otherCharset = false;
  for (const line of head.split('\r\n').slice(1)) {
    // A lone line end, or a line that goes on in the next one.
    if (/[\r\n\0]|^[ \t]/.test(line)) return null;
    const colon = line.indexOf(':');
    // Trap: `trim` would take off a byte order mark, and make a header of what is none.
    if (!HEADER_NAME.test(line.slice(0, Math.max(0, colon)))) return null;
    const field = line.slice(0, colon).toLowerCase();
    const value = line.slice(colon + 1);
    // No field is a form of its own (RFC 7578 §4.3), and few readers would look into one.
    if (field === 'content-type' && (/^[ \t]*(multipart|message)\//i.test(value) || NAME_IN_TYPE.test(value)))
      return null;
    if (field === 'content-type') otherCharset = saysOtherCharset(value, isLikeAscii);
    // Deprecated (RFC 7578 §4.7): some readers decode such a part, most take it as it is.
    if (field === 'content-transfer-encoding' && !/^(7bit|8bit|binary)$/i.test(value.trim())) return null;
    if (field !== 'content-disposition') continue;
    if (name !== null) return null;
    name = dispositionName(value);
    if (name === null) return null;
  }
  return otherCharset && name === 'model' ? null : name;
}

function dispositionName(value: string): string | null {
  const parameters = DISPOSITION.exec(value)?.[1];
  if (parameters === undefined) return null;
  const seen = new Map<string, string>();
  for (const [, key = '', quoted, plain = ''] of parameters.matchAll(PARAMETER)) {
    const text = quoted ?? plain;
    const isOdd = seen.has(key.toLowerCase()) || ASSIGNING.test(text);
    // Some readers take the first name that they find, also within a text, or what stands between semicolons.
    if (isOdd || (!seen.has('name') && /name\*?\s*=|;/i.test(text))) return null;
    seen.set(key.toLowerCase(), text);
  }
  const name = seen.get('name');
  // Some readers take a backslash for an escape and some do not.
  return name === undefined || name.includes('\\') || isNearlyModel(name) ? null : name;
}

/** Some readers ignore the case of a name, take off blanks and single quotes, read `model[]` as a list, or decode RFC 2047. */
function isNearlyModel(name: string): boolean {
  return name !== 'model' && (name.includes('=?') || name.replace(/[^a-z]/gi, '').toLowerCase() === 'model');
}
