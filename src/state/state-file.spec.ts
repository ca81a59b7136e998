import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { StateFile, StateFileError } from './state-file.js';

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'llm-proxy-state-'));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

describe('StateFile', () => {
  it('gives back what was saved, and leaves nothing else behind', async () => {
    const path = join(folder(), 'state.json');
    const file = new StateFile(path);
    expect(file.load()).toEqual({ kind: 'absent' });
    await file.save({ a: [1, 'two'] });
    expect(new StateFile(path).load()).toEqual({ kind: 'loaded', value: { a: [1, 'two'] } });
    expect(readdirSync(join(path, '..'))).toEqual(['state.json']);
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  it('is whole whenever somebody looks, and ends with what was saved last', async () => {
    const path = join(folder(), 'state.json');
    const file = new StateFile(path);
    await file.save({ n: 0 });
    const saves = Array.from({ length: 20 }, (_, n) => file.save({ n, filler: 'x'.repeat(n * 5000) }));
    let done = false;
    void Promise.all(saves).then(() => (done = true));
    while (!done) {
      expect(() => JSON.parse(readFileSync(path, 'utf8')) as unknown).not.toThrow();
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(file.load()).toMatchObject({ value: { n: 19 } });
  });

  it.each(['', '{"half":', '\0\0\0', 'not json'])('keeps a file that holds %j under another name', (text) => {
    const path = join(folder(), 'state.json');
    writeFileSync(path, text);
    writeFileSync(`${path}.corrupt`, 'an earlier one');
    const keptAs = `${path}.corrupt-2`;
    expect(new StateFile(path).load()).toEqual({ kind: 'corrupt', keptAs });
    expect(readFileSync(keptAs, 'utf8')).toBe(text);
    expect(readFileSync(`${path}.corrupt`, 'utf8')).toBe('an earlier one');
    expect(new StateFile(path).load()).toEqual({ kind: 'absent' });
  });

  it('says which file cannot be read, or written', async () => {
    const path = join(folder(), 'state.json');
    mkdirSync(path);
    expect(() => new StateFile(path).load()).toThrow(`the state file ${path} cannot be read (EISDIR)`);
    // Endless: were it opened, the memory would fill.
    expect(() => new StateFile('/dev/zero').load()).toThrow('the state file /dev/zero is no regular file');
    const nowhere = join(path, 'missing', 'state.json');
    await expect(new StateFile(nowhere).save({})).rejects.toThrow(
      new StateFileError(`the state file ${nowhere} cannot be written (ENOENT)`),
    );
  });

  it('leaves the old content whole, and no rest, where the new one cannot take its place', async () => {
    const parent = folder();
    // A folder in its place cannot be replaced by a file; unlike permissions, this holds for every user.
    const path = join(parent, 'state.json');
    mkdirSync(join(path, 'full'), { recursive: true });
    await expect(new StateFile(path).save({})).rejects.toThrow(StateFileError);
    expect(readdirSync(parent)).toEqual(['state.json']);
    rmSync(path, { recursive: true });
    const file = new StateFile(path);
    await file.save({ n: 1 });
    expect(file.load()).toMatchObject({ value: { n: 1 } });
  });
});
