import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { closeSync, constants, existsSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { randomUUID } from 'node:crypto';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { waitFor } from '../../../test/support/wait-for.js';
import { LogDestination } from './log-destination.js';

let directory = '';
const children: ChildProcess[] = [];

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'log-destination-'));
});

afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
  rmSync(directory, { recursive: true, force: true });
});

/** A pipe with a reader of its own process, so that the writing side is what a log usually is. */
function pipeTo(...command: [string, ...string[]]): { fd: number; reader: ChildProcess } {
  const path = join(directory, 'pipe');
  execFileSync('mkfifo', [path]);
  const [program, ...args] = command;
  const reader = spawn(program, [...args, path], { stdio: ['ignore', 'ignore', 'ignore'] });
  children.push(reader);
  return { fd: openSync(path, constants.O_WRONLY), reader };
}

describe('LogDestination', () => {
  it('writes lines to a file, in order, and all of them before it is closed', async () => {
    const path = join(directory, 'log');
    const fd = openSync(path, 'a');
    const destination = new LogDestination(fd);
    const lines = Array.from({ length: 2000 }, (_, i) => `line ${i} é\n`);
    for (const line of lines) destination.write(line);
    await destination.close(5000);
    closeSync(fd);
    expect(readFileSync(path, 'utf8')).toBe(lines.join(''));
    expect(destination.dropped).toBe(0);
  });

  it('writes every byte of lines of any length and script, in order', async () => {
    const text = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 50 }),
      fc
        .tuple(fc.constantFrom('x', 'é', '語', '🙂', '\ud800'), fc.integer({ min: 1, max: 200_000 }))
        .map(([unit, times]) => unit.repeat(times)),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(text, { maxLength: 12 }), async (lines) => {
        const path = join(directory, `log-${randomUUID()}`);
        const fd = openSync(path, 'a');
        const destination = new LogDestination(fd);
        for (const line of lines) destination.write(line);
        await destination.close(5000);
        closeSync(fd);
        expect(readFileSync(path).equals(Buffer.concat(lines.map((line) => Buffer.from(line))))).toBe(true);
        expect(destination.dropped).toBe(0);
        rmSync(path);
      }),
      { numRuns: 50 },
    );
  });

  it('writes by itself, without being closed', async () => {
    const path = join(directory, 'log');
    const fd = openSync(path, 'a');
    new LogDestination(fd).write('a line\n');
    await waitFor(() => readFileSync(path, 'utf8') === 'a line\n', 'the line was written');
    closeSync(fd);
  });

  it('writes what waits at once before a hard exit', () => {
    const path = join(directory, 'log');
    const fd = openSync(path, 'a');
    const destination = new LogDestination(fd);
    destination.write('last words\n');
    destination.flushSync();
    expect(readFileSync(path, 'utf8')).toBe('last words\n');
    closeSync(fd);
  });

  it.skipIf(!existsSync('/dev/full'))(
    'drops and counts the lines that a full disk does not take',
    async () => {
      const fd = openSync('/dev/full', 'w');
      const destination = new LogDestination(fd);
      for (let i = 0; i < 10; i++) destination.write('line\n');
      await destination.close(2000);
      expect(destination.dropped).toBe(10);
      destination.write('another\n');
      await destination.close(2000);
      expect(destination.dropped).toBe(11);
      closeSync(fd);
    },
  );

  it('never blocks on a reader that stalls: it keeps a little, drops the rest, and counts it', async () => {
    // Opens the pipe and never reads.
    const { fd } = pipeTo(
      process.execPath,
      '-e',
      "require('fs').openSync(process.argv[1],'r');setInterval(()=>{},1e3)",
    );
    const destination = new LogDestination(fd);
    const line = `${'x'.repeat(999)}\n`;
    for (let round = 0; round < 20; round++) {
      for (let i = 0; i < 1000; i++) destination.write(line);
      await new Promise((resolve) => setTimeout(resolve, 3));
    }
    expect(destination.dropped).toBeGreaterThan(5000);
    expect(destination.dropped).toBeLessThan(20_000);
    const before = performance.now();
    await destination.close(50);
    destination.flushSync();
    // The reader will never read: closing must not wait for it.
    expect(performance.now() - before).toBeLessThan(5000);
  });

  it('drops and counts what it is given after its reader has gone', async () => {
    const { fd, reader } = pipeTo('cat');
    const destination = new LogDestination(fd);
    destination.write('seen\n');
    await destination.close(2000);
    expect(destination.dropped).toBe(0);
    reader.kill('SIGKILL');
    await waitFor(() => reader.signalCode !== null, 'the reader has gone');
    let written = 0;
    await waitFor(() => {
      destination.write('lost\n');
      written++;
      return destination.dropped > 2;
    }, 'lines are counted as dropped');
    await destination.close(2000);
    expect(destination.dropped).toBe(written);
  });
});
