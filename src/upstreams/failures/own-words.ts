/** These speak of the caller or of the provider. */
const NOT_THE_REQUEST: ReadonlySet<number> = new Set([401, 402, 403, 429]);
/** What servers and gateways put before a message: `Error code: 400 - `, `(402) `, `litellm.BadRequestError: OpenAIException - `. */
const LABEL =
  /^(?:\(?\d{3}\)?[\s:-]+|(?:(?:litellm\.)?\w{1,40}(?:error|exception)|(?:api |provider |upstream )?error(?: code)?|bad request|request failed)[\s:-]+)/;
const LABELS = 4;
/** A gateway tells a provider's error whole, as JSON within its own message. */
const INNER_MESSAGE = /^b?'?\{.{0,200}?"message": ?"([^"]*)"/s;
/** What may stand before the phrase, in any number. Nobody would call a role or a tool like that. */
const BEFORE =
  "(?:(?:your|you|you've|have|has|had|the|this|api|key|account|organization|project|workspace|team|user|is|with|of|due|to|because|sorry|currently|there) )*";
/** What may stand behind it: an end, or words that go on with it. */
const BEHIND = '(?:s\\b)?(?=$|[.,!;:"]|\\s?[-(]|\\s(?:to|for|on|in|at|or|and|left|remaining|please)\\b)';

/** The phrase, where it is what the message begins by saying. */
export function asOwnWords(phrase: string | RegExp): RegExp {
  const source = typeof phrase === 'string' ? phrase : phrase.source;
  return new RegExp(`^${BEFORE}(?:${source})${BEHIND}`);
}

/**
 * Whether the words of a message may be a client's. Providers repeat what it wrote (a role, the name of a tool, an address,
 * what a server of tools said), and a client could write "insufficient quota" to have a key taken from everybody.
 */
export function mayRepeatClient(status: number): boolean {
  return !NOT_THE_REQUEST.has(status);
}

/** Without what stands before the message, in lower case as it came. */
export function withoutLabels(message: string): string {
  let rest = message;
  for (let i = 0; i < LABELS; i++) {
    const label = LABEL.exec(rest);
    if (label === null) break;
    rest = rest.slice(label[0].length);
  }
  return INNER_MESSAGE.exec(rest)?.[1] ?? rest;
}
