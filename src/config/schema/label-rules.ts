import { labelKeyProblem, RESERVED_PREFIX } from '../../common/selector/label-key.js';
import { LabelSelector } from '../../common/selector/label-selector.js';
import { SelectorSyntaxError } from '../../common/selector/selector-syntax-error.js';
import { shownKey } from '../loader/config-path.js';
import { isPlainObject } from '../loader/plain-object.js';
import { kindOf, notText, simpleRule, type Rule, type RuleFinding } from './rule.js';

/** Trap: `!preview` picks what has no label, so a forgotten value would open it. */
export const NO_LABELS = 'has no value; write labels, {} for none, or remove the key';

/** A mapping of label keys to texts. */
export const labels: Rule = {
  name: 'labels',
  schema: { type: 'object', additionalProperties: { type: 'string' } },
  check: (value) => {
    if (!isPlainObject(value))
      return [{ at: [], message: `must be a mapping of labels to texts, not ${kindOf(value)}` }];
    return Object.keys(value).flatMap((key): RuleFinding[] => {
      const message = labelProblem(key, value[key]);
      return message === null ? [] : [{ at: [key], message }];
    });
  },
};

function labelProblem(key: string, value: unknown): string | null {
  if (key.startsWith(RESERVED_PREFIX))
    return `labels that begin with "${RESERVED_PREFIX}" are built in; choose another name than "${shownKey(key)}"`;
  const problem = labelKeyProblem(key);
  if (problem !== null) return `"${shownKey(key)}" is no label: ${problem}`;
  if (typeof value === 'string') return null;
  return value === null ? 'has no value; write "" or a text' : notText(value);
}

/** A label selector; a syntax error is told with its position. */
export const selector: Rule = simpleRule('selector', { type: 'string' }, (value) => {
  if (typeof value !== 'string')
    return `${notText(value)}${isPlainObject(value) || Array.isArray(value) ? '; a selector is one quoted text such as "region in (eu, local)"' : ''}`;
  try {
    LabelSelector.parse(value);
    return null;
  } catch (error) {
    if (error instanceof SelectorSyntaxError) return `is no label selector: ${error.message}`;
    throw error;
  }
});
