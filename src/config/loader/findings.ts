import { formatPath, type ConfigPath } from './config-path.js';
import type { ConfigProblem } from './config-problem.js';

/** Where a value stands in the text; null where that is not known. */
export type LineOf = (path: ConfigPath) => number | null;

/** Collects what one run of the loader finds, so that all of it can be told at once. Lives for that run. */
export class Findings {
  readonly #problems: ConfigProblem[] = [];
  readonly #warnings: ConfigProblem[] = [];

  constructor(readonly lineOf: LineOf) {}

  problem(path: ConfigPath, message: string): void {
    this.#problems.push({ path: formatPath(path), line: this.lineOf(path), message });
  }

  warning(path: ConfigPath, message: string): void {
    this.#warnings.push({ path: formatPath(path), line: this.lineOf(path), message });
  }

  /** Of something beside the file: the environment. */
  problemOutside(message: string): void {
    this.#problems.push({ path: '', line: null, message });
  }

  warningOutside(message: string): void {
    this.#warnings.push({ path: '', line: null, message });
  }

  /** In the order of the file. */
  get problems(): ConfigProblem[] {
    return inFileOrder(this.#problems);
  }

  /** In the order of the file. */
  get warnings(): ConfigProblem[] {
    return inFileOrder(this.#warnings);
  }
}

function inFileOrder(problems: readonly ConfigProblem[]): ConfigProblem[] {
  return problems.toSorted((a, b) => (a.line ?? 0) - (b.line ?? 0));
}
