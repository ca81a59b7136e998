import { readdirSync, rmSync } from 'node:fs';
import { join, relative } from 'node:path';

const BUILT = join(import.meta.dirname, 'dist');
/** What is started or imported from outside; all else is reached through them. */
const ENTRIES = ['main', 'bootstrap', 'app.factory', 'contracts/index', 'config/generate-schema'];

/**
 * Packages that nobody else meets: plugins get no object of theirs, and they are dozens of small files each (or the few of
 * many that this service uses).
 */
const JOINED_PACKAGES = /^(yaml$|undici\/|class-validator\/)/;

/**
 * Joins the modules that `nest build` wrote into a few files in their place: Node resolves, reads and links each module by
 * itself, which was a tenth of the time to the first answer. The declarations stay as they are.
 */
export default {
  input: Object.fromEntries(ENTRIES.map((entry) => [entry, join(BUILT, `${entry}.js`)])),
  platform: 'node',
  // The others stay outside: plugins share them, and Nest's own parts look at each other's classes.
  external: (id) =>
    !JOINED_PACKAGES.test(id) && !id.startsWith('.') && !id.startsWith('/') && !id.startsWith('\0'),
  output: {
    dir: BUILT,
    format: 'esm',
    entryFileNames: '[name].js',
    // Trap: beside main.js, never in a folder: `ownAddress` counts on it.
    chunkFileNames: 'chunk-[hash].js',
    // Class names stand in logs and in the messages about plugins.
    keepNames: true,
    minify: false,
    comments: false,
  },
  plugins: [ownAddress(), onlyAscii(), onlyTheJoined()],
};

/** In a chunk too, `import.meta.url` names the module's own place, from which it finds files beside it. */
function ownAddress() {
  return {
    name: 'own-address',
    transform(code, id) {
      const place = relative(BUILT, id);
      if (place.startsWith('..')) return null;
      if (ENTRIES.includes(place.replace(/\.js$/, ''))) return null;
      return code.replaceAll('import.meta.url', `new URL('./${place}', import.meta.url).href`);
    },
  };
}

/** A second copy of a class is another class, so the files that were joined go. */
function onlyTheJoined() {
  return {
    name: 'only-the-joined',
    writeBundle(_options, written) {
      for (const file of readdirSync(BUILT, { recursive: true })) {
        if (file.endsWith('.js') && !(file in written)) rmSync(join(BUILT, file));
      }
    },
  };
}

/** One character beyond Latin-1 makes V8 keep the text of the whole file in two bytes each, for good. */
function onlyAscii() {
  const escaped = (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
  return { name: 'only-ascii', renderChunk: (code) => code.replaceAll(/[^\0-\x7f]/g, escaped) };
}
