import { AUTH_STYLES, CAPABILITIES, PROTOCOLS } from '../access-config.js';
import { kindOf, show, simpleRule, type Rule } from './rule.js';

const wordsRule = (name: string, words: readonly string[], value: unknown): string | null =>
  typeof value === 'string' && words.includes(value)
    ? null
    : `${show(value)} is no ${name}; write one of ${words.join(', ')}`;

/** One protocol, or a list of them, the preferred one first. */
export const protocols: Rule = {
  name: 'protocols',
  schema: {
    type: ['string', 'array'],
    pattern: `^(${PROTOCOLS.join('|')})$`,
    items: { enum: PROTOCOLS },
    minItems: 1,
  },
  check: (value) => listOrWord('protocol', PROTOCOLS, value, true),
};

/** A list of what an upstream can do. */
export const capabilities: Rule = {
  name: 'capabilities',
  schema: { type: 'array', items: { enum: CAPABILITIES }, minItems: 1 },
  check: (value) => listOrWord('capability', CAPABILITIES, value, false),
};

export const authStyle: Rule = simpleRule('authStyle', { enum: AUTH_STYLES }, (value) =>
  wordsRule('place for a key', AUTH_STYLES, value),
);

function listOrWord(
  name: string,
  words: readonly string[],
  value: unknown,
  wordAlone: boolean,
): { at: number[]; message: string }[] {
  if (!Array.isArray(value)) {
    if (!wordAlone)
      return [{ at: [], message: `must be a list such as [${words[0]}, ${words[1]}], not ${kindOf(value)}` }];
    const message = wordsRule(name, words, value);
    return message === null ? [] : [{ at: [], message }];
  }
  if (value.length === 0) return [{ at: [], message: `must hold at least one ${name}` }];
  return value.flatMap((item: unknown, i) => {
    const message = value.indexOf(item) < i ? `${show(item)} stands twice` : wordsRule(name, words, item);
    return message === null ? [] : [{ at: [i], message }];
  });
}
