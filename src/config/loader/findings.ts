import { formatPath, type ConfigPath } from './config-path.js';
import type { ConfigProblem } from './config-problem.js';
import { KnownSecrets } from './known-secrets.js';

/** Where a value stands in the text; null where that is not known. */
export type LineOf = (path: ConfigPath) => number | null;

/** Collects what one run of the loader finds, so that all of it can be told at once. Lives for that run. */
export class Findings {
  readonly #problems: ConfigProblem[] = [];
  readonly #warnings: ConfigProblem[] = [];
  readonly #files: Findings[] = [];
  /** Where the problems are: a file may have one on each of many lines, and each line asks. */
  readonly #places = new Set<string>();

  constructor(
    readonly lineOf: LineOf,
    /** Of another file that belongs to the configuration. */
    private readonly file: string | null = null,
    /** What no problem and no warning shows, in whichever order they were found. */
    readonly secrets = new KnownSecrets(),
  ) {}

  /** Those about another file; they are told after those about this one. The first step of their paths is a line. */
  ofFile(name: string, lineOf: LineOf): Findings {
    const findings = new Findings(lineOf, name, this.secrets);
    this.#files.push(findings);
    return findings;
  }

  problem(path: ConfigPath, message: string): void {
    const problem = { path: this.#shown(path), line: this.lineOf(path), message };
    this.#problems.push(problem);
    this.#places.add(this.#place(problem.path, problem.line));
  }

  warning(path: ConfigPath, message: string): void {
    this.#warnings.push({ path: this.#shown(path), line: this.lineOf(path), message });
  }

  /** Of something beside the file: the environment. */
  problemOutside(message: string): void {
    this.#problems.push({ path: '', line: null, message });
  }

  warningOutside(message: string): void {
    this.#warnings.push({ path: '', line: null, message });
  }

  /** Whether a problem was found with this very value. */
  has(path: ConfigPath): boolean {
    return this.#places.has(this.#place(this.#shown(path), this.file === null ? null : this.lineOf(path)));
  }

  /** Whether a problem was found with this key, anything in it, or the file it names. */
  hasIn(key: string): boolean {
    return (
      this.#problems.some(({ path }) => path.split(/[.[]/)[0] === key) ||
      (key.endsWith('_file') && this.#files.some(({ problems }) => problems.length > 0))
    );
  }

  /** In the order of the file. */
  get problems(): ConfigProblem[] {
    return [...this.#shownOf(this.#problems), ...this.#files.flatMap(({ problems }) => problems)];
  }

  /** In the order of the file. */
  get warnings(): ConfigProblem[] {
    return [...this.#shownOf(this.#warnings), ...this.#files.flatMap(({ warnings }) => warnings)];
  }

  #shownOf(found: readonly ConfigProblem[]): ConfigProblem[] {
    return inFileOrder(found).map(({ path, line, message }) => ({
      path: this.secrets.mask(path),
      line,
      message: this.secrets.mask(message),
    }));
  }

  /** In another file each line is a thing of its own, and the path does not name it. */
  #place(shown: string, line: number | null): string {
    return this.file === null ? shown : `${line} ${shown}`;
  }

  #shown(path: ConfigPath): string {
    if (this.file === null) return formatPath(path);
    const inside = formatPath(path.slice(1));
    return inside === '' ? this.file : `${this.file}: ${inside}`;
  }
}

function inFileOrder(problems: readonly ConfigProblem[]): ConfigProblem[] {
  return problems.toSorted((a, b) => (a.line ?? 0) - (b.line ?? 0));
}
