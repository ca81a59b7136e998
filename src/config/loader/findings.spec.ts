import { describe, expect, it } from 'vitest';
import { Findings } from './findings.js';

describe('Findings', () => {
  it('know whether a very value has a problem; in another file, on that line', () => {
    const findings = new Findings(() => 7);
    findings.problem(['a', 0, 'b'], 'wrong');
    expect([findings.has(['a', 0, 'b']), findings.has(['a', 0]), findings.has(['a', 1, 'b'])]).toEqual([
      true,
      false,
      false,
    ]);
    const inFile = findings.ofFile('c.jsonl', (path) => Number(path[0]));
    inFile.problem([3, 'keys'], 'wrong');
    inFile.warning([4, 'keys'], 'odd');
    expect([inFile.has([3, 'keys']), inFile.has([4, 'keys']), inFile.has([3])]).toEqual([true, false, false]);
    expect(findings.has(['keys'])).toBe(false);
  });

  // Looking through all of them for each question, it would run into the time limit of any test.
  it('answer at once, however many there are', () => {
    const inFile = new Findings(() => null).ofFile('c.jsonl', (path) => Number(path[0]));
    const LINES = 200_000;
    for (let line = 1; line <= LINES; line++) inFile.problem([line, 'keys'], 'wrong');
    let known = 0;
    for (let line = 1; line <= LINES; line++) if (inFile.has([line, 'keys'])) known++;
    expect([known, inFile.has([LINES + 1, 'keys'])]).toEqual([LINES, false]);
  });
});
