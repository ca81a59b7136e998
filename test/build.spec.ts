import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import * as contracts from '../src/contracts/index.js';

const BUILT = fileURLToPath(new URL('../dist/', import.meta.url));
const built = readdirSync(BUILT, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.js') && !file.startsWith('examples/'))
  .toSorted();
const read = (file: string): string => readFileSync(join(BUILT, file), 'utf8');

describe('what npm run build leaves', () => {
  it('is the entries and chunks beside main.js, so that own files are found and no class exists twice', () => {
    const entries = [
      'app.factory.js',
      'bootstrap.js',
      'config/generate-schema.js',
      'contracts/index.js',
      'main.js',
    ];
    expect(built.filter((file) => !/^chunk-[\w-]+\.js$/.test(file))).toEqual(entries);
    const classes = built.flatMap((file) => [...read(file).matchAll(/^(?:let \w+ = )?class (\w+)/gm)]);
    const names = classes.map(([, name]) => name);
    expect(names).toContain('ConcurrencyService');
    expect(names.filter((name, at) => names.indexOf(name) !== at)).toEqual([]);
  });

  it('finds its own files from where the modules were', () => {
    const places = built.flatMap((file) =>
      [...read(file).matchAll(/(?:new URL\("([^"]+)", )?import\.meta\.url/g)].map(([, place]) => ({
        file,
        place,
      })),
    );
    // The joiner's own place has no name: from there it finds Node's modules only.
    const inChunks = places.filter(
      ({ file, place }) => file !== 'config/generate-schema.js' && place !== undefined,
    );
    expect(inChunks.map(({ place }) => place)).toContain('./state/redis/scripts.js');
    for (const { file, place } of inChunks) {
      expect(file).not.toContain('/');
      expect(place).toMatch(/^\.\/[\w./-]+\.js$/);
    }
  });

  it('offers the contracts of the source, and the errors that the service knows', async () => {
    const offered = (await import(join(BUILT, 'contracts/index.js'))) as typeof contracts;
    expect(Object.keys(offered).toSorted()).toEqual(Object.keys(contracts).toSorted());
    const service = (await import(join(BUILT, 'app.factory.js'))) as Record<string, unknown>;
    expect(service).toMatchObject({ createApp: expect.any(Function), loadConfig: expect.any(Function) });
    expect(offered.GatewayError.name).toBe('GatewayError');
  });

  it('loads the version check before anything that an old Node could not read', () => {
    expect(read('main.js').match(/^import .*/gm)).toEqual(['import module from "node:module";']);
  });
});
