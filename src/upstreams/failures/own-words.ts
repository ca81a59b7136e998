/** These speak of the caller or of the provider. */
const NOT_THE_REQUEST: ReadonlySet<number> = new Set([401, 402, 403, 429]);
/** What begins a quotation, and what ends one; an apostrophe does neither. */
const QUOTATIONS = [
  [/(?<![a-z0-9])'/, /'(?![a-z0-9])/g],
  [/"/, /"/g],
  [/`/, /`/g],
  [/[\u2018\u201c\u00ab]/, /[\u2019\u201d\u00bb]/g],
] as const;
/** `Error code: 400 - `, `bad request: ` */
const LABEL = /^(?:api )?(?:error|bad request|invalid request|request failed)(?: code)?[\s:]*\d{0,3}[\s:-]+/;
/** Beyond it somebody else may be talking: a server of tools, an address, a list of what was sent. */
const END = /[:;=<>{}[\]()/\\\n]|$/;
/** Sentences that tell what a request held. */
const TELLS_OF_REQUEST =
  /\b(?:invalid|unknown|unsupported|unexpected|unrecogni[sz]ed|not (?:found|supported|allowed)|fail(?:ed|s)|could not|cannot|unable|tools?|functions?|roles?|param(?:eter)?s?|arguments?|fields?|variants?|tags?|names?|values?|urls?|files?)\b/;

/**
 * What in an error message is surely the provider's own, in lower case as it came. Providers repeat in it what a client
 * wrote (a role, the name of a tool, an address, what a server of tools said), and a client could write "insufficient quota"
 * to have a key taken from everybody. Where the status speaks of the request itself, only sentences at its beginning
 * count that quote nothing and tell nothing of the request; of a server's fault what is not quoted.
 */
export function ownWords(message: string, status: number): string {
  if (NOT_THE_REQUEST.has(status)) return message;
  let own = message;
  for (const [begin, end] of QUOTATIONS) own = withoutQuoted(own, begin, end);
  if (status >= 500) return own;
  own = own.replace(LABEL, '');
  const sentences = own.slice(0, own.search(END)).split(/[.!?](?:\s|$)/);
  const doubtful = sentences.findIndex((sentence) => TELLS_OF_REQUEST.test(sentence));
  return sentences.slice(0, doubtful < 0 ? sentences.length : doubtful).join('. ');
}

/** From the first that begins a quotation to the last that ends one: what is quoted may hold such marks as well. */
function withoutQuoted(text: string, begin: RegExp, end: RegExp): string {
  const from = text.search(begin);
  if (from < 0) return text;
  const last = [...text.slice(from + 1).matchAll(end)].at(-1);
  return last === undefined
    ? text.slice(0, from)
    : `${text.slice(0, from)}\u0000${text.slice(from + last.index + 2)}`;
}
