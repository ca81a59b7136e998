import { spawn } from 'node:child_process';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';

const SOURCES = ['src', 'examples/plugins'];
const BUILT = ['dist/main.js', 'dist/examples/plugins/audit.js'];

/** Why the build is not up to date, in words for the user; null where it is. */
export function whyBuild(root) {
  const built = BUILT.map((path) => join(root, path));
  if (!built.every((path) => existsSync(path))) return 'there is no build yet';
  const builtAt = Math.min(...built.map((path) => statSync(path).mtimeMs));
  const changed = SOURCES.some((path) => newestIn(join(root, path)) > builtAt);
  return changed ? 'the sources are newer than the build' : null;
}

/** `npm run build` with a sign of life; the compiler's own words only where it fails. */
export function build(root, write) {
  return new Promise((resolve, reject) => {
    const startedAt = Date.now();
    const child = spawn('npm', ['run', '--silent', 'build'], {
      cwd: root,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const said = [];
    child.stdout.on('data', (piece) => said.push(piece));
    child.stderr.on('data', (piece) => said.push(piece));
    const progress = setInterval(() => write('.'), 1000);
    child.on('error', reject);
    child.on('close', (code) => {
      clearInterval(progress);
      write(` ${((Date.now() - startedAt) / 1000).toFixed(0)} s\n`);
      if (code === 0) resolve();
      else reject(new Error(`the build failed:\n${Buffer.concat(said).toString('utf8')}`));
    });
  });
}

function newestIn(folder) {
  let newest = 0;
  for (const entry of readdirSync(folder, { withFileTypes: true, recursive: true })) {
    if (!entry.isFile() || entry.name.endsWith('.spec.ts')) continue;
    newest = Math.max(newest, statSync(join(entry.parentPath, entry.name)).mtimeMs);
  }
  return newest;
}
