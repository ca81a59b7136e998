import 'reflect-metadata';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { file } from '../../../test/support/small-config.js';
import { formatProblem } from './config-problem.js';
import { type ConfigInput, loadConfig } from './load-config.js';

// Should one of them be opened, the test would hang, for a pipe has no writer here.
describe('a file that is no regular file', () => {
  const folder = mkdtempSync(join(tmpdir(), 'odd-files-'));
  afterAll(() => rmSync(folder, { recursive: true }));
  const pipe = join(folder, 'pipe');
  execFileSync('mkfifo', [pipe]);
  symlinkSync(pipe, join(folder, 'link-to-pipe'));
  writeFileSync(join(folder, 'c.jsonl'), '{"id":"a","keys":[{"id":"k","value":"x"}]}');
  symlinkSync('c.jsonl', join(folder, 'link'));
  const problemsOf = (input: ConfigInput): string[] => {
    const result = loadConfig(input, {});
    return result.ok ? [] : result.problems.map(formatProblem);
  };
  const consumers = (name: string): string[] =>
    problemsOf({ text: file({ end: `consumers_file: ${name}` }), directory: folder });
  const tls = (name: string): string[] =>
    problemsOf({ text: file({ p: `tls: { ca: ${name} }` }), directory: folder });

  it.each([
    ['pipe', 'a pipe'],
    ['link-to-pipe', 'a pipe'],
    ['/dev/zero', 'a device'],
  ])('is refused unread: %s', (name, kind) => {
    expect(consumers(name)).toEqual([
      expect.stringMatching(`^consumers_file \\(line \\d\\): file is no regular file but ${kind}: /`),
    ]);
    expect(tls(name)).toContainEqual(
      expect.stringMatching(`^providers\\[0\\].tls.ca \\(line \\d\\): is no regular file but ${kind}: /`),
    );
  });

  it('may not be an endless device where the configuration itself should be', () => {
    expect(problemsOf({ path: '/dev/zero' })).toEqual(['config is no regular file but a device: /dev/zero']);
  });

  it('is not what a link leads to', () => {
    expect(consumers('link')).toEqual([]);
  });
});
