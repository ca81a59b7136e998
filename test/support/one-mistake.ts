import { expect } from 'vitest';
import { formatProblem } from '../../src/config/loader/config-problem.js';
import { loadConfig } from '../../src/config/loader/load-config.js';

/** A file in which nothing is wrong, to be broken in one place. */
export const GOOD = `server:
  port: 8100
providers:
  - id: p1
    url: "http://127.0.0.1:9/v1"
    key: sk-abcdefgh1234
upstreams:
  - id: u1
    provider: p1
    model: real
models:
  - name: m1
    upstreams: [u1]
`;

/** All problems of a file, as they are printed. */
export function linesOf(text: string, environment = {}): string[] {
  const result = loadConfig({ text }, environment);
  return result.ok ? [] : result.problems.map(formatProblem);
}

/** The good file with one place changed: its problems. */
export function changed(from: string, to: string): string[] {
  expect(GOOD).toContain(from);
  return linesOf(GOOD.replace(from, to));
}
