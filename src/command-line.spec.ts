import { describe, expect, it } from 'vitest';
import { parseCommandLine, USAGE } from './command-line.js';

const parsed = (...args: string[]) => parseCommandLine(args, 'config.yaml');

describe('parseCommandLine', () => {
  it.each<[string[], object]>([
    [[], { kind: 'start' }],
    [['--check', 'a.yaml'], { kind: 'check', path: 'a.yaml' }],
    [['--check'], { kind: 'check', path: 'config.yaml' }],
    [['--new-key'], { kind: 'new-key', id: 'new' }],
    [['--new-key', 'ci'], { kind: 'new-key', id: 'ci' }],
    [['-h'], { kind: 'help' }],
    [['--version'], { kind: 'version' }],
  ])('%j', (args, expected) => expect(parsed(...args)).toEqual(expected));

  it.each([[['a.yaml']], [['--check', 'a', 'b']], [['--new-key', 'a', 'b']], [['--nothing']]])(
    '%j is wrong',
    (args) => expect(parsed(...args).kind).toBe('wrong'),
  );

  it('tells of each option', () => {
    for (const option of ['--check', '--new-key', '--help', '--version']) expect(USAGE).toContain(option);
  });
});
