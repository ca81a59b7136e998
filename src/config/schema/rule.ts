import { shownValue } from '../../common/text/shown-value.js';

export type JsonSchema = Readonly<Record<string, unknown>>;

export interface RuleFinding {
  /** From the value the rule was given to the part that is wrong. */
  readonly at: readonly (string | number)[];
  /** What is wrong and what would be right. */
  readonly message: string;
}

/** What the value of a key must be. Pure; absent values never reach it. */
export interface Rule {
  readonly name: string;
  /** The same for editors, as far as JSON Schema can say it. */
  readonly schema: JsonSchema;
  check(value: unknown): RuleFinding[];
  /** Parts of a value, valid or not, that no message may show, wherever else they stand. */
  secretsIn?(value: unknown): readonly string[];
}

/** A rule with at most one finding, about the value as a whole. */
export function simpleRule(
  name: string,
  schema: JsonSchema,
  problem: (value: unknown) => string | null,
): Rule {
  return {
    name,
    schema,
    check: (value) => {
      const message = problem(value);
      return message === null ? [] : [{ at: [], message }];
    },
  };
}

/** A value of the file as a message shows it. Not where a secret belongs. */
export function show(value: unknown): string {
  if (typeof value === 'string') return `"${shownValue(value)}"`;
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object' && value !== null) return 'a mapping';
  return String(value);
}

/** What kind of value it is, without a word of it. */
export function kindOf(value: unknown): string {
  if (value === null || value === undefined) return 'nothing';
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'bigint') return 'a number';
  if (typeof value === 'object') return 'a mapping';
  return `a ${typeof value === 'string' ? 'text' : typeof value}`;
}

/** Numbers and booleans where a text belongs: YAML reads `3.10` as 3.1. */
export function notText(value: unknown): string {
  const quotable = typeof value === 'number' || typeof value === 'bigint' || typeof value === 'boolean';
  return `must be a text, not ${kindOf(value)}${quotable ? '; quote it' : ''}`;
}
