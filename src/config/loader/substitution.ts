export type Environment = Readonly<Record<string, string | undefined>>;

export interface Substituted {
  readonly text: string;
  /** What is wrong, without a word of the text: it may be a secret. Empty when all is well. */
  readonly problems: readonly string[];
}

const MAX_NESTING = 20;
const NAME = /[A-Za-z_][A-Za-z0-9_]*/y;

/** Replaces `${NAME}` and `${NAME:-default}` (also nested); `$${` is a literal `${`. */
export function substitute(text: string, environment: Environment): Substituted {
  const expansion = new Expansion(text, environment);
  return { text: expansion.run(), problems: [...new Set(expansion.problems)] };
}

/** One pass over one text. */
class Expansion {
  readonly problems: string[] = [];
  #at = 0;

  constructor(
    private readonly text: string,
    private readonly environment: Environment,
  ) {}

  run(): string {
    return this.#until(null, 0, true);
  }

  /** Text up to `end` (or the end of all). `used` is false inside a default that is not needed: nothing is asked there. */
  #until(end: '}' | null, depth: number, used: boolean): string {
    let result = '';
    while (this.#at < this.text.length) {
      const rest = this.text.startsWith.bind(this.text);
      if (end !== null && this.text[this.#at] === end) return result;
      if (rest('$${', this.#at)) {
        result += '${';
        this.#at += 3;
      } else if (rest('${', this.#at)) {
        this.#at += 2;
        result += this.#variable(depth + 1, used);
      } else {
        result += this.text[this.#at++];
      }
    }
    return result;
  }

  #variable(depth: number, used: boolean): string {
    NAME.lastIndex = this.#at;
    const name = NAME.exec(this.text)?.[0];
    this.#at += name?.length ?? 0;
    const value =
      name !== undefined && Object.hasOwn(this.environment, name) ? this.environment[name] : undefined;
    if (name === undefined || depth > MAX_NESTING) return this.#giveUp();
    if (this.text[this.#at] === '}') {
      this.#at++;
      if (value === undefined && used)
        this.problems.push(
          `the environment variable ${name} is not set; set it, or write \${${name}:-default}`,
        );
      return value ?? '';
    }
    if (!this.text.startsWith(':-', this.#at)) return this.#giveUp();
    this.#at += 2;
    const isSet = value !== undefined && value !== '';
    const fallback = this.#until('}', depth, used && !isSet);
    if (this.text[this.#at] !== '}') return this.#giveUp();
    this.#at++;
    return isSet ? value : fallback;
  }

  #giveUp(): string {
    const closed = this.text.includes('}', this.#at);
    this.problems.push(
      closed
        ? 'only ${NAME} and ${NAME:-default} are understood after "${" (letters, digits and _); a literal "${" is written "$${"'
        : '"${" is not closed by "}"; a literal "${" is written "$${"',
    );
    this.#at = this.text.length;
    return '';
  }
}
