import { existsSync, readFileSync, renameSync, statSync } from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';

/** The file cannot serve; the message says which one, and what to do. */
export class StateFileError extends Error {
  override readonly name = 'StateFileError';
}

export type LoadedState =
  | { readonly kind: 'loaded'; readonly value: unknown }
  | { readonly kind: 'absent' }
  /** Whatever it held is kept under another name. */
  | { readonly kind: 'corrupt'; readonly keptAs: string };

/**
 * One JSON file that outlives the process. A reader sees the old content or the new one, never half of it, whenever the
 * machine stops. Belongs to one process; never writes twice at a time.
 */
export class StateFile {
  #writing: Promise<void> = Promise.resolve();

  /** @param path absolute */
  constructor(readonly path: string) {}

  /** Read at start, before anything is served. @throws StateFileError where it exists and cannot be read */
  load(): LoadedState {
    let text: string;
    try {
      const stats = statSync(this.path);
      // Trap: opening a pipe waits for its writer, and a device may never end.
      if (!stats.isFile() && !stats.isDirectory())
        throw new StateFileError(`the state file ${this.path} is no regular file`);
      text = readFileSync(this.path, 'utf8');
    } catch (error) {
      if (error instanceof StateFileError) throw error;
      if (codeOf(error) === 'ENOENT') return { kind: 'absent' };
      throw new StateFileError(`the state file ${this.path} cannot be read (${codeOf(error)})`);
    }
    try {
      return { kind: 'loaded', value: JSON.parse(text) };
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      return { kind: 'corrupt', keptAs: this.setAside() };
    }
  }

  /** Renames the file, so that nothing it holds is written over. @throws StateFileError */
  setAside(): string {
    let keptAs = `${this.path}.corrupt`;
    for (let n = 2; existsSync(keptAs); n++) keptAs = `${this.path}.corrupt-${n}`;
    try {
      renameSync(this.path, keptAs);
    } catch (error) {
      throw new StateFileError(
        `the state file ${this.path} is not valid and cannot be renamed (${codeOf(error)}); move it away`,
      );
    }
    return keptAs;
  }

  /** Replaces the content as a whole; it is on the disk when this resolves. @throws StateFileError */
  save(value: unknown): Promise<void> {
    const text = JSON.stringify(value);
    const write = this.#writing.then(() => this.#write(text));
    this.#writing = write.catch(() => {});
    return write;
  }

  async #write(text: string): Promise<void> {
    const temporary = `${this.path}.${process.pid}.tmp`;
    try {
      const file = await open(temporary, 'w', 0o600);
      try {
        await file.writeFile(text);
        await file.sync();
      } finally {
        await file.close();
      }
      await rename(temporary, this.path);
    } catch (error) {
      await rm(temporary, { force: true }).catch(() => {});
      throw new StateFileError(`the state file ${this.path} cannot be written (${codeOf(error)})`);
    }
    await syncFolder(dirname(this.path));
  }
}

/** The new name is only on the disk when its folder is. Not every file system lets folders be synced. */
async function syncFolder(path: string): Promise<void> {
  try {
    const folder = await open(path, 'r');
    try {
      await folder.sync();
    } finally {
      await folder.close();
    }
  } catch (error) {
    if (codeOf(error) === 'unknown error') throw error;
  }
}

function codeOf(error: unknown): string {
  const { code } = error as NodeJS.ErrnoException;
  return typeof code === 'string' ? code : 'unknown error';
}
