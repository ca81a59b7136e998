const PARAMETER = /\s*;\s*([!#$%&'*+.^_`|~0-9A-Za-z-]+)=(?:"((?:[^"\\]|\\.)*)"|([^\s;",]+))/y;

/**
 * The parameters of a header value such as `form-data; name="a"; filename=b`, names in lower case. Null where it is not
 * exactly that, or says one name twice: two readers must not be able to read it differently.
 */
export function headerParameters(value: string, type: string): ReadonlyMap<string, string> | null {
  const text = value.trim();
  if (text.slice(0, type.length).toLowerCase() !== type) return null;
  const parameters = new Map<string, string>();
  let at = type.length;
  while (at < text.length && text.slice(at).trim() !== ';') {
    PARAMETER.lastIndex = at;
    const match = PARAMETER.exec(text);
    if (match === null) return null;
    const [whole, name = '', quoted, plain = ''] = match;
    const key = name.toLowerCase();
    if (parameters.has(key)) return null;
    parameters.set(key, quoted ?? plain);
    at += whole.length;
  }
  return parameters;
}
