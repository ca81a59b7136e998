import { keepNumberText, oddNumberText } from '../../common/json/number-texts.js';
import type { ConfigPath } from './config-path.js';
import type { ConfigProblem } from './config-problem.js';
import { formatPath } from './config-path.js';
import type { LineOf } from './findings.js';
import { readPlainJson } from './json-shortcut.js';
import { LineIndex, offsetOf } from './yaml-lines.js';
import { YamlReader } from './yaml-reader.js';
import { parseYaml } from './yaml-syntax.js';

/** The plain values of a file and where they stand in it. */
export interface ConfigSource {
  readonly value: unknown;
  readonly lineOf: LineOf;
  /** What is wrong with the text itself; then `value` is not to be used. */
  readonly problems: readonly ConfigProblem[];
}

/** Reads YAML, and so JSON too. */
export function readSource(text: string): ConfigSource {
  const json = readPlainJson(text);
  if (json === null) return readYaml(text);
  // Lines are only asked for when something is wrong: then the text is read again, slowly.
  let slow: ConfigSource | undefined;
  const lineOf = (path: ConfigPath): number | null => (slow ??= readYaml(text)).lineOf(path);
  return { value: NUMBER_FORM.test(text) ? withNumberTexts(text) : json.value, lineOf, problems: [] };
}

/** Numbers that JavaScript would write otherwise; texts that look so are only read a little more slowly. */
const NUMBER_FORM = /\d[eE.]\d|\d[eE][+-]|-0/;

function withNumberTexts(text: string): unknown {
  const keep = function (this: object, key: string, value: unknown, context?: { source?: string }): unknown {
    const written = oddNumberText(value, context?.source);
    if (written !== undefined) keepNumberText(this, key, written);
    return value;
  };
  return JSON.parse(text, keep);
}

function readYaml(text: string): ConfigSource {
  const lines = new LineIndex(text);
  const { document, problems: syntax } = parseYaml(text);
  const problems: ConfigProblem[] = syntax.map(({ offset, message }) => ({
    path: '',
    line: lines.lineAt(offset),
    message,
  }));
  const found: { path: ConfigPath; message: string }[] = [];
  const reader = new YamlReader((path, message) => found.push({ path, message }));
  const lineOf = (path: ConfigPath): number =>
    lines.lineAt(offsetOf(document.contents, path, reader.targets));
  // After a syntax error the rest of the tree is a guess.
  const value = problems.length === 0 ? reader.read(document.contents) : null;
  for (const { path, message } of found)
    problems.push({ path: formatPath(path), line: lineOf(path), message });
  return { value, lineOf, problems };
}
