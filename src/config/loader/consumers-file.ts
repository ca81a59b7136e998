import { dirname, isAbsolute, resolve } from 'node:path';
import { ConsumerSection } from '../schema/consumer.section.js';
import type { Origin } from './build-config.js';
import type { ConfigPath } from './config-path.js';
import { readFileText } from './file-text.js';
import type { Findings } from './findings.js';
import { readPlainJson } from './json-shortcut.js';
import { jsonLineProblem, wholeFileProblem } from './json-line-problem.js';
import { isPlainObject } from './plain-object.js';
import { SectionReader } from './section-reader.js';
import type { Environment } from './substitution.js';

/** More lines that are no objects are only counted. */
const SHOWN_LINES = 20;

/** A consumer with the place it was written at. Lives for one run of the loader. */
export class ConsumerEntry {
  constructor(
    readonly section: ConsumerSection,
    private readonly findings: Findings,
    private readonly here: ConfigPath,
    private readonly written: string,
  ) {}

  /** Reports something about a part of it. */
  problem(at: ConfigPath, message: string): void {
    this.findings.problem([...this.here, ...at], message);
  }

  warning(at: ConfigPath, message: string): void {
    this.findings.warning([...this.here, ...at], message);
  }

  /** Whether a problem was found with this very part. */
  isWrong(at: ConfigPath): boolean {
    return this.findings.has([...this.here, ...at]);
  }

  /** Where it stands, for a message about another one. */
  place(): string {
    const line = this.findings.lineOf(this.here);
    return line === null ? this.written : `${this.written} (line ${line})`;
  }
}

/** Reads one consumer a line (JSON lines). Findings name the line of that file. */
export function readConsumersFile(
  written: string,
  origin: Origin,
  findings: Findings,
  environment: Environment,
): ConsumerEntry[] {
  const file = readFileText(isAbsolute(written) ? written : resolve(folderOf(origin), written), 'file');
  if (!file.ok) {
    findings.problem(['consumers_file'], file.problem.message);
    return [];
  }
  // The line's number is the first step of a path in here.
  const inFile = findings.ofFile(written, (path) => (path.length === 0 ? null : Number(path[0])));
  const reader = new SectionReader(inFile, environment, 'a consumer');
  const entries: ConsumerEntry[] = [];
  const odd: { readonly line: number; readonly text: string }[] = [];
  for (const [i, untrimmed] of file.text
    .replace(/^\ufeff/, '')
    .split('\n')
    .entries()) {
    const text = untrimmed.trim();
    if (text === '') continue;
    const line = i + 1;
    const value = readPlainJson(text)?.value;
    if (isPlainObject(value))
      entries.push(new ConsumerEntry(reader.read(ConsumerSection, value, [line]), inFile, [line], written));
    else odd.push({ line, text });
  }
  const ofAll = odd.length === 0 ? null : wholeFileProblem(file.text);
  if (ofAll !== null) {
    inFile.problem([], ofAll);
    return [];
  }
  reportLines(odd, inFile);
  return entries;
}

function reportLines(
  odd: readonly { readonly line: number; readonly text: string }[],
  findings: Findings,
): void {
  for (const { line, text } of odd.slice(0, SHOWN_LINES)) {
    const { at, message } = jsonLineProblem(text);
    findings.problem([line, ...at], message);
  }
  const next = odd[SHOWN_LINES];
  if (next !== undefined)
    findings.problem([next.line], `${odd.length - SHOWN_LINES} lines from here on are no consumers either`);
}

/** What relative paths of the file start from. */
export function folderOf({ path, directory }: Origin): string {
  return path === null ? (directory ?? process.cwd()) : dirname(path);
}
