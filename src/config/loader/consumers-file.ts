import { dirname, isAbsolute, resolve } from 'node:path';
import { ConsumerSection } from '../schema/consumer.section.js';
import type { Origin } from './build-config.js';
import type { ConfigPath } from './config-path.js';
import { readFileText } from './file-text.js';
import { Findings } from './findings.js';
import { readPlainJson } from './json-shortcut.js';
import { isPlainObject, type PlainObject } from './plain-object.js';
import { SectionReader } from './section-reader.js';
import type { Environment } from './substitution.js';

/** A consumer with the place it was written at. */
export interface ConsumerEntry {
  readonly section: ConsumerSection;
  /** Reports something about a part of it. */
  readonly problem: (at: ConfigPath, message: string) => void;
  readonly warning: (at: ConfigPath, message: string) => void;
  /** Where it stands, for a message about another one. */
  readonly place: () => string;
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
  const inFile = findings.ofFile(written, (path) => Number(path[0]));
  const reader = new SectionReader(inFile, environment);
  const lines = file.text.replace(/^\ufeff/, '').split('\n');
  return lines.flatMap((text, i): ConsumerEntry[] => {
    const line = i + 1;
    const value = text.trim() === '' ? null : consumerOf(text.trim(), line, inFile);
    if (value === null) return [];
    const problem = (at: ConfigPath, message: string) => inFile.problem([line, ...at], message);
    const warning = (at: ConfigPath, message: string) => inFile.warning([line, ...at], message);
    const place = () => `${written} (line ${line})`;
    return [{ section: reader.read(ConsumerSection, value, [line]), problem, warning, place }];
  });
}

function consumerOf(text: string, line: number, findings: Findings): PlainObject | null {
  const value = readPlainJson(text)?.value;
  if (isPlainObject(value)) return value;
  // Of the line nothing is shown: it may hold a key.
  findings.problem([line], 'must be one JSON object a line (one consumer), with no key twice in it');
  return null;
}

/** What relative paths of the file start from. */
export function folderOf({ path, directory }: Origin): string {
  return path === null ? (directory ?? process.cwd()) : dirname(path);
}
