import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { file } from '../../../test/support/small-config.js';
import { formatProblem } from './config-problem.js';
import { loadConfig } from './load-config.js';

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');
const DIGEST = sha256('test');
const TOKEN = 'metrics_token: secret-of-the-metrics';
const problemsOf = (text: string): string[] => {
  const result = loadConfig({ text }, {});
  return result.ok ? [] : result.problems.map(formatProblem);
};

describe('consumers_file', () => {
  const folder = mkdtempSync(join(tmpdir(), 'consumers-'));
  afterAll(() => rmSync(folder, { recursive: true }));
  const lines = (...texts: string[]): void => writeFileSync(join(folder, 'c.jsonl'), texts.join('\n'));
  const main = file({ server: TOKEN, end: 'consumers: [{ id: own, keys: [{ id: k, value: own-key }] }]\nconsumers_file: ./c.jsonl' }); // prettier-ignore
  const load = () => loadConfig({ text: main, directory: folder }, { KEY: 'from-the-environment' });
  const problems = (): string[] => {
    const result = load();
    return result.ok ? [] : result.problems.map(formatProblem);
  };

  it('adds one consumer a line, beside the file that names it', () => {
    lines(
      '\ufeff{"id":"a","keys":[{"id":"k","value":"${KEY}"}]}',
      '',
      '  {"id":"b","keys":[{"id":"k","value":"x"}]}\r',
      '',
    );
    const result = load();
    if (!result.ok) throw new Error(problems().join());
    expect(result.warnings).toEqual([]);
    expect(result.config.consumers?.map(({ id }) => id)).toEqual(['own', 'a', 'b']);
    expect(result.config.consumers?.[1]?.keys[0]?.digest).toBe(sha256('from-the-environment'));
  });

  it('closes the service also by itself', () => {
    lines('{"id":"a","keys":[{"id":"k","value":"x"}]}');
    const text = file({ server: TOKEN, end: 'consumers_file: ./c.jsonl' });
    const result = loadConfig({ text, directory: folder }, {});
    expect(result.ok && result.config.consumers).toHaveLength(1);
  });

  it('tells problems with their line, and all of them', () => {
    lines(
      '{"id":"a","keys":[{"id":"k","sha256":"nope"}]}',
      'no json',
      '{"id":"own","id":"x"}',
      '[1]',
      '{"id":"own","keys":[{"id":"k","value":"own-key"}]}',
      '{"id":"a"}',
      '{"id":"q","prio":1}',
    );
    expect(problems()).toEqual([
      expect.stringContaining('./c.jsonl: keys[0].sha256 (line 1): must be the SHA-256'),
      expect.stringContaining('./c.jsonl (line 2): is no JSON object; each line must be one JSON object'),
      './c.jsonl: id (line 3): the key "id" stands twice; remove one',
      expect.stringContaining('./c.jsonl (line 4): holds a list; write one consumer a line'),
      expect.stringContaining('./c.jsonl: id (line 5): "own" is already the id of consumers[0] (line 5)'),
      expect.stringContaining(
        './c.jsonl: keys[0] (line 5): is the same key as keys[0] of consumers[0] (line 5)',
      ),
      expect.stringContaining('./c.jsonl: id (line 6): "a" is already the id of ./c.jsonl (line 1)'),
      expect.stringContaining(
        './c.jsonl: prio (line 7): unknown key "prio" in a consumer; did you mean "priority"?',
      ),
    ]);
  });

  it.each([
    ['{"id":1234567890123456}', ': id (line 1): holds a number of 16 digits or more, which would be rounded; if a text is meant, quote it'],
    ['{"id":"a","keys":[{"id":"k","value":12345678901234567890}]}', ': keys[0].value (line 1): holds a number of 16 digits'],
    ['{"id":123}', ': id (line 1): must be a text, not 123; quote it'],
    ['{"id":"a","kyes":[]}', ': kyes (line 1): unknown key "kyes" in a consumer; did you mean "keys"?'],
    ['{"id":"a","keys":[{"id":"k","value":"x","sha":""}]}', ': keys[0].sha (line 1): unknown key "sha" in keys[];'],
    ['{"id":"a","select":{"model":"x"}}', ': select.model (line 1): unknown key "model" in select; did you mean "models"?'],
    ['{"id":"a","keys":[{"id":"k","value":"x","value":"y"}]}', ': keys[0].value (line 1): the key "value" stands twice'],
    ['{"id":"a", keys: []}', ' (line 1): is no valid JSON; names and texts stand in double quotes'],
    ['{"id":"a","keys":[{"id":"k"', ' (line 1): is cut off'],
    ['{"id":"a', ' (line 1): is cut off'],
    ['{"id":"a"},', ' (line 1): ends with a comma; remove it'],
    ['- id: a', ' (line 1): is no JSON object; each line must be one JSON object such as'],
    ['null', ' (line 1): holds no object; each line must be one JSON object such as'],
    ['"a"', ' (line 1): holds no object'],
    ['# teams', ' (line 1): is a comment; this file can hold none'],
    ['// teams', ' (line 1): is a comment'],
    [']', ' (line 1): is a bracket alone; write one consumer a line'],
    ['{"id":"a"}{"id":"b"}', ' (line 1): has more behind its object, at character 11;'],
    ['[\n{"id":"a"},\n{"id":"b"}\n]', ': is one JSON list; write one consumer a line'],
    ['{\n "id": "a"\n}', ': is one JSON value over several lines; write each consumer on one line'],
    [`{"id":"a","keys":[{"id":"k","sha256":"sha256:${DIGEST}"}]}`, 'as 64 hexadecimal digits alone, without "sha256:" in front of them'],
    [`{"id":"a","keys":[{"id":"k","sha256":" ${DIGEST}"}]}`, 'as 64 hexadecimal digits, without white space around them'],
    [`{"id":"a","keys":[{"id":"k","sha256":"${Buffer.from(DIGEST, 'hex').toString('base64')}"}]}`, 'as 64 hexadecimal digits, not in base64'],
    ['{"id":"a","keys":[{"id":"k","sha256":"9f86d0"}]}', 'not a text of 6 characters; a key in the clear belongs to "value"'],
    ['{"id":"a","keys":{"id":"k"}}', ': keys (line 1): must be a list of keys'],
  ])('says of %j%s', (line, told) => {
    lines(line);
    const alone = file({ server: TOKEN, end: 'consumers_file: ./c.jsonl' });
    const result = loadConfig({ text: alone, directory: folder }, {});
    const all = result.ok ? [] : result.problems.map(formatProblem);
    expect(all).toEqual([expect.stringContaining(told)]);
    expect(all[0]).toMatch(/^\.\/c\.jsonl/);
    // What only follows from that is no news.
    expect(result.warnings.filter(({ message }) => message.includes('there is no consumer'))).toEqual([]);
    if (line.includes('"keys"')) expect(result.warnings).toEqual([]);
  }); // prettier-ignore

  it.each([101, 2_000, 5_000, 100_000])('says where it is nested too deeply: %i levels', (depth) => {
    lines(
      '{"id":"a"}',
      `{"id":"b","labels":${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}}`,
      `{"id":"c","keys":${'['.repeat(depth)}${']'.repeat(depth)}}`,
      `{"id":"d","id":"d","labels":${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}}`,
    );
    const told = 'nested too deeply (more than 100 levels)';
    expect(problems()).toEqual([
      `./c.jsonl: labels (line 2): ${told}`,
      `./c.jsonl: keys (line 3): ${told}`,
      `./c.jsonl: labels (line 4): ${told}`,
    ]);
  });

  it('tells twenty lines and counts the rest', () => {
    lines(...Array.from({ length: 50 }, () => 'no json'));
    expect(problems()).toHaveLength(21);
    expect(problems()[20]).toBe('./c.jsonl (line 21): 30 lines from here on are no consumers either');
  });

  it('warns at its key where it holds nobody', () => {
    lines('', '');
    const alone = file({ server: TOKEN, end: 'consumers_file: ./c.jsonl' });
    expect(loadConfig({ text: alone, directory: folder }, {}).warnings.map(formatProblem)).toEqual([
      'consumers_file (line 5): there is no consumer, so every request is answered with 401',
    ]);
  });

  it('warns of a key that is an id as well', () => {
    lines('{"id":"a","keys":[{"id":"k","value":"k"}]}');
    expect(load().warnings.map(formatProblem)).toEqual([
      './c.jsonl: keys[0] (line 1): the key is an id of it as well; ids are logged, so choose another one',
    ]);
  });

  it.each([
    ['a folder', 'is a directory, not a file', () => mkdirSync(join(folder, 'c.jsonl'))],
    ['no UTF-8', 'is not valid UTF-8 text', () => writeFileSync(join(folder, 'c.jsonl'), Buffer.from([0x7b, 0xe4, 0x7d]))],
    ['not there', 'not found', () => {}],
  ])('is refused where it is %s, and nothing is said that only follows from it', (_, told, make) => {
    rmSync(join(folder, 'c.jsonl'), { recursive: true, force: true });
    make();
    const alone = file({ server: TOKEN, end: 'consumers_file: ./c.jsonl' });
    const result = loadConfig({ text: alone, directory: folder }, {});
    expect(result.ok ? [] : result.problems.map(formatProblem)).toEqual([expect.stringContaining(`consumers_file (line 5): file ${told}`)]);
    expect(result.warnings).toEqual([]);
  }); // prettier-ignore

  it('says nothing of no consumers where some are broken', () => {
    const result = loadConfig({ text: file({ server: TOKEN, end: 'consumers: [5]' }) }, {});
    expect(result.ok ? [] : result.problems).toHaveLength(1);
    expect(result.warnings).toEqual([]);
  });

  it('is refused where it is not there', () => {
    rmSync(join(folder, 'c.jsonl'), { force: true, recursive: true });
    expect(problems()).toEqual([`consumers_file (line 6): file not found: ${join(folder, 'c.jsonl')}`]);
  });

  it('is not null', () => {
    expect(problemsOf(file({ end: 'consumers_file: null' }))).toEqual([
      expect.stringContaining('has no value'),
    ]);
  });
});
