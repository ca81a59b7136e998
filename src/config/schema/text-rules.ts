import { kindOf, notText, show, simpleRule, type Rule } from './rule.js';

/** Ids, names, the provider's model: any text that is not empty. */
export const text: Rule = simpleRule('text', { type: 'string', minLength: 1 }, (value) => {
  if (typeof value !== 'string')
    return isScalar(value) ? `must be a text, not ${show(value)}; quote it` : notText(value);
  return value.trim() === '' ? 'must not be empty' : null;
});

/** Trimmed and substituted before it comes here. Never shown. */
export const secret: Rule = neverShown(
  simpleRule('secret', { type: 'string' }, (value) => {
    if (typeof value !== 'string') return notText(value);
    const key = value.trim();
    if (/[\r\n]/.test(key)) return 'holds a line feed; a key is one line';
    return /[^\x20-\x7e\x80-\xff]/.test(key) ? 'holds a character that no HTTP header can carry' : null;
  }),
);

/** A secret that must be there where its key is; trimmed and substituted before it comes here. Never shown. */
export const token: Rule = neverShown(
  simpleRule('token', { type: 'string', minLength: 1 }, (value) => {
    if (typeof value !== 'string') return notText(value);
    // Trap: clients encode other characters as they like, and white space beyond ASCII would be trimmed without a word.
    if (/[^\0-\x7f]/.test(value)) return 'holds a character beyond ASCII, which no header carries safely';
    const problem = secret.check(value)[0]?.message;
    if (problem !== undefined) return problem;
    const key = value.trim();
    if (key === '') return 'is empty; a key must be a text';
    // A client's header with either of these is refused before anything is looked up.
    return /[,\s]/.test(key) ? 'holds a comma or a space, which no client can send in a key' : null;
  }),
);

/** Of a flag that closes something. */
export const NO_FLAG = 'has no value; write true or false, or remove the key';

export const flag: Rule = simpleRule('flag', { type: 'boolean' }, (value) => {
  if (typeof value === 'boolean') return null;
  return `must be true or false, not ${show(value)}${typeof value === 'string' ? ' (YAML 1.2: yes, no, on and off are texts)' : ''}`;
});

/** One word out of a few. */
export function oneOf(name: string, words: readonly string[]): Rule {
  const listed = words.slice(0, -1).join(', ');
  return simpleRule(name, { enum: words }, (value) =>
    words.includes(value as string) ? null : `must be ${listed} or ${words.at(-1)}, not ${show(value)}`,
  );
}

const HOST = 'must be a host name or an address such as 0.0.0.0, 127.0.0.1 or "::1"';
export const host: Rule = simpleRule('host', { type: 'string', minLength: 1 }, (value) => {
  if (typeof value !== 'string') return notText(value);
  return /^[\w.:%-]{1,253}$/.test(value) ? null : `${HOST}, not ${show(value)}`;
});

/** A DNS name: TLS cannot ask for an address. */
export const hostName: Rule = simpleRule('hostName', { type: 'string', minLength: 1 }, (value) => {
  if (typeof value !== 'string') return notText(value);
  const labels = /^(?=.{1,253}$)[a-z0-9_]([a-z0-9_-]{0,62})(\.[a-z0-9_][a-z0-9_-]{0,62})*$/i;
  const isName = labels.test(value) && !/^[\d.]+$/.test(value);
  return isName ? null : `must be a host name such as llm.internal.example, no address, not ${show(value)}`;
});

/** An origin as browsers send it: scheme, host, port, nothing else. */
export const origins: Rule = {
  name: 'origins',
  schema: { type: 'array', items: { type: 'string', examples: ['*', 'https://chat.example.com'] } },
  check: (value) => {
    if (!Array.isArray(value)) return [{ at: [], message: `must be a list of origins, not ${show(value)}` }];
    return value.flatMap((item: unknown, i) => {
      const message = originProblem(item);
      return message === null ? [] : [{ at: [i], message }];
    });
  },
};

function originProblem(value: unknown): string | null {
  if (typeof value !== 'string') return notText(value);
  if (value === '*' || value === 'null') return null;
  const wanted = 'is no origin; write "https://host", "https://host:port" or "*"';
  if (value.length > 300 || !/^[a-z][a-z0-9+.-]*:\/\/[^\s/?#@]+$/i.test(value)) {
    const url = /^https?:/i.test(value) && value.length <= 300 ? URL.parse(value) : null;
    return url === null
      ? `${show(value)} ${wanted}`
      : `${show(value)} is more than an origin; write "${url.origin}"`;
  }
  if (!/^https?:/i.test(value)) return null;
  const origin = URL.parse(value)?.origin;
  if (origin === undefined) return `${show(value)} ${wanted}`;
  return origin === value ? null : `browsers never send ${show(value)}; write "${origin}"`;
}

/** A list of texts, none empty; `what` names one of them. */
export function textList(what: string, atLeastOne: boolean): Rule {
  return {
    name: 'textList',
    schema: { type: 'array', items: text.schema, ...(atLeastOne ? { minItems: 1 } : {}) },
    check: (value) => {
      if (!Array.isArray(value))
        return [{ at: [], message: `must be a list of ${what}, not ${kindOf(value)}` }];
      if (atLeastOne && value.length === 0)
        return [{ at: [], message: `must hold at least one of the ${what}` }];
      return value.flatMap((item: unknown, i) =>
        text.check(item).map(({ message }) => ({ at: [i], message })),
      );
    },
  };
}

function isScalar(value: unknown): boolean {
  return typeof value === 'number' || typeof value === 'bigint' || typeof value === 'boolean';
}

function neverShown(rule: Rule): Rule {
  return { ...rule, secretsIn: (value) => (typeof value === 'string' ? [value] : []) };
}
