import { SelectorSyntaxError } from './selector-syntax-error.js';

export type Mark = '(' | ')' | ',' | '=' | '==' | '!=' | '!';

export interface SelectorToken {
  /** A mark, a `word` (key, operator or value), or the `end` of the text. */
  readonly kind: Mark | 'word' | 'end';
  readonly text: string;
  /** Counted from 1. */
  readonly position: number;
}

const WORD_ENDS = /[\s"'(),=!<>]/;

/** The tokens of a selector, the last one `end`. @throws SelectorSyntaxError at a character that belongs to none */
export function selectorTokens(text: string): SelectorToken[] {
  const tokens: SelectorToken[] = [];
  let at = 0;
  while (at < text.length) {
    const start = at;
    const first = text[at] as string;
    if (/\s/.test(first)) {
      at++;
      continue;
    }
    const mark = markAt(text, at);
    if (mark !== null) {
      at += mark.length;
      tokens.push({ kind: mark, text: mark, position: start + 1 });
      continue;
    }
    while (at < text.length && !WORD_ENDS.test(text[at] as string)) at++;
    tokens.push({ kind: 'word', text: text.slice(start, at), position: start + 1 });
  }
  tokens.push({ kind: 'end', text: '', position: text.length + 1 });
  return tokens;
}

/** The longest mark that stands here; null where a word begins. */
function markAt(text: string, at: number): Mark | null {
  const two = text.slice(at, at + 2);
  if (two === '==' || two === '!=') return two;
  const one = text[at] as string;
  switch (one) {
    case '(':
    case ')':
    case ',':
    case '=':
    case '!':
      return one;
    case '<':
    case '>':
      throw new SelectorSyntaxError(at + 1, `"${one}" compares numbers, which labels are not`);
    case '"':
    case "'":
      throw new SelectorSyntaxError(at + 1, 'keys and values are written without quotes');
    default:
      return null;
  }
}
