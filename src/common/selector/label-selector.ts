import { labelKeyProblem } from './label-key.js';
import { SelectorSyntaxError } from './selector-syntax-error.js';
import { selectorTokens, type SelectorToken } from './selector-tokens.js';

export type Labels = ReadonlyMap<string, string>;

/** One condition of a selector: `in` and `notin` with their values, `exists` and `absent` without. */
export interface Requirement {
  readonly key: string;
  readonly operator: 'in' | 'notin' | 'exists' | 'absent';
  readonly values: ReadonlySet<string>;
}

const NO_VALUES: ReadonlySet<string> = new Set();

/**
 * A label selector in Kubernetes' syntax: `a=b`, `a==b`, `a!=b`, `a in (x,y)`, `a notin (x)`, `a`, `!a`, joined by
 * commas that all must hold. As there, `!=` and `notin` also hold for what has no such label, and the empty selector
 * holds for everything. Immutable; knows no particular label.
 */
export class LabelSelector {
  private constructor(
    /** As it was written. */
    readonly text: string,
    readonly requirements: readonly Requirement[],
  ) {}

  /** @throws SelectorSyntaxError */
  static parse(text: string): LabelSelector {
    return new LabelSelector(text, new SelectorParser(selectorTokens(text)).requirements());
  }

  matches(labels: Labels): boolean {
    for (const requirement of this.requirements) if (!holds(requirement, labels)) return false;
    return true;
  }
}

function holds({ key, operator, values }: Requirement, labels: Labels): boolean {
  const value = labels.get(key);
  switch (operator) {
    case 'exists':
      return value !== undefined;
    case 'absent':
      return value === undefined;
    case 'in':
      return value !== undefined && values.has(value);
    case 'notin':
      return value === undefined || !values.has(value);
  }
}

/** One pass over the tokens of one text. `in` and `notin` are words like others where a key or value stands. */
class SelectorParser {
  #at = 0;

  constructor(private readonly tokens: readonly SelectorToken[]) {}

  requirements(): Requirement[] {
    const found: Requirement[] = [];
    if (this.#next.kind === 'end') return found;
    for (;;) {
      found.push(this.#requirement());
      const token = this.#take();
      if (token.kind === 'end') return found;
      if (token.kind !== ',') throw unexpected(token, '"," or the end');
    }
  }

  #requirement(): Requirement {
    if (this.#next.kind === '!') {
      this.#take();
      return { key: this.#key(), operator: 'absent', values: NO_VALUES };
    }
    const key = this.#key();
    if (this.#next.kind === ',' || this.#next.kind === 'end')
      return { key, operator: 'exists', values: NO_VALUES };
    const operator = this.#take();
    if (operator.kind === '=' || operator.kind === '==') return { key, operator: 'in', values: this.#one() };
    if (operator.kind === '!=') return { key, operator: 'notin', values: this.#one() };
    if (operator.kind === 'word' && (operator.text === 'in' || operator.text === 'notin'))
      return { key, operator: operator.text, values: this.#list() };
    throw unexpected(operator, '"=", "==", "!=", "in", "notin", "," or the end');
  }

  #key(): string {
    const token = this.#take();
    if (token.kind !== 'word') throw unexpected(token, 'a label');
    const problem = labelKeyProblem(token.text);
    if (problem !== null) throw new SelectorSyntaxError(token.position, problem);
    return token.text;
  }

  /** The value behind `=`; none is the empty one. */
  #one(): ReadonlySet<string> {
    if (this.#next.kind === ',' || this.#next.kind === 'end') return new Set(['']);
    const token = this.#take();
    if (token.kind !== 'word') throw unexpected(token, 'a value');
    return new Set([token.text]);
  }

  #list(): ReadonlySet<string> {
    const open = this.#take();
    if (open.kind !== '(') throw unexpected(open, '"("');
    const values = new Set<string>();
    for (;;) {
      const value = this.#take();
      if (value.kind !== 'word') throw unexpected(value, 'a value');
      values.add(value.text);
      const token = this.#take();
      if (token.kind === ')') return values;
      if (token.kind !== ',') throw unexpected(token, '"," or ")"');
    }
  }

  get #next(): SelectorToken {
    return this.tokens[this.#at] as SelectorToken;
  }

  #take(): SelectorToken {
    const token = this.#next;
    if (token.kind !== 'end') this.#at++;
    return token;
  }
}

function unexpected(token: SelectorToken, wanted: string): SelectorSyntaxError {
  const found = token.kind === 'end' ? 'the end' : `"${shown(token.text)}"`;
  return new SelectorSyntaxError(token.position, `${wanted} expected, ${found} found`);
}

function shown(text: string): string {
  return text.length > 40 ? `${text.slice(0, 40)}…` : text;
}
