import 'reflect-metadata';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { PluginSetupError, setUpPlugins } from '../src/app.factory.js';
import { formatProblem } from '../src/config/loader/config-problem.js';
import { loadConfig } from '../src/config/loader/load-config.js';
import { uncommented } from './support/example-file.js';
import { directoryWith, theCompany } from './support/company.js';
import { ServiceProcess } from './support/process.js';

const root = fileURLToPath(new URL('../', import.meta.url));
const read = (path: string): string => readFileSync(`${root}${path}`, 'utf8');
const example = read('config/config.example.yaml');

const pages = [
  'README.md',
  ...readdirSync(`${root}docs`, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
];
/** Also those that are indented, or have an info string behind the language. */
const FENCE = /^([ \t]*)```+ ?ya?ml\b[^\n]*\n([\s\S]*?)^\1```/gm;
const blocks = pages.flatMap((page) =>
  [...read(page).matchAll(FENCE)].map(([, , text = ''], i) => ({ page, i, text })),
);

const MINIMAL = `
providers: [{ id: p, url: 'http://127.0.0.1:1' }]
upstreams: [{ id: u, provider: p, model: real }]
models: [{ name: m, upstreams: [u] }]
`;
const isWhole = (text: string): boolean => /^models:/m.test(text);
const whole = (text: string): string => (isWhole(text) ? text : text + MINIMAL);

/** A variable without a default is one the reader has to set. */
const environment = { ROUTER_API_KEY: 'sk-example-0123456789', PROXY_PASSWORD: 'pw', REDIS_PASSWORD: 'pw' };

/** All that `--check` would tell, as far as it does not come from a line that says which file must exist. */
async function objectionsTo(text: string, directory: string): Promise<string[]> {
  const lines = text.split('\n');
  const excused = (line: number | null) => line !== null && lines[line - 1]?.includes('must exist') === true;
  const result = loadConfig({ text, directory }, environment);
  if (!result.ok)
    return [...result.problems, ...result.warnings].filter(({ line }) => !excused(line)).map(formatProblem);
  const warnings = result.warnings.map(formatProblem);
  try {
    await setUpPlugins(result.config);
    return warnings;
  } catch (error) {
    if (!(error instanceof PluginSetupError)) throw error;
    const problems = error.problems.filter(({ path }) => !excused(result.lineOf(path)));
    return [...warnings, ...problems.map(({ message }) => message)];
  }
}

/** A folder with every file that the examples say must exist. */
function furnishedFolder(): string {
  const { authority, client } = theCompany();
  const directory = directoryWith({
    'company-ca.pem': authority.cert,
    'client.pem': client.cert,
    'client.key': client.key,
    'consumers.example.jsonl': read('config/consumers.example.jsonl'),
    'package.json': read('package.json'),
  });
  const plugins = join(directory, 'dist/examples/plugins');
  mkdirSync(plugins, { recursive: true });
  for (const name of ['audit', 'word-filter', 'team-header'])
    writeFileSync(join(plugins, `${name}.js`), `export * from '${root}dist/examples/plugins/${name}.js';`);
  // The page leads the reader to write it; that its code compiles is tested beside the other code of that page.
  writeFileSync(
    join(plugins, 'hello.js'),
    `import { RegisterInterceptor } from '${root}dist/contracts/index.js';
     export class Hello { onRequest() {} }
     RegisterInterceptor({ id: 'hello' })(Hello);`,
  );
  return directory;
}

describe('YAML of the documentation', () => {
  it('is found on many pages', () => {
    expect(new Set(blocks.map(({ page }) => page)).size).toBeGreaterThan(10);
    expect(blocks.some(({ text }) => !isWhole(text))).toBe(true);
  });

  it.each(blocks)(
    '$page #$i passes the check in an empty folder, files that it names aside',
    async ({ text }) => {
      expect(await objectionsTo(whole(text), directoryWith({}))).toEqual([]);
    },
  );

  it.each(blocks)('$page #$i passes the check with these files', async ({ text }) => {
    const named = whole(text.replaceAll('must exist', ''));
    expect(await objectionsTo(named, furnishedFolder())).toEqual([]);
  });
});

describe('config/config.example.yaml', () => {
  it('passes --check in a fresh folder, with nothing in the environment', async () => {
    const service = new ServiceProcess({ config: example, args: ['--check', 'config.yaml'] });
    expect([await service.exit(), service.stderr]).toEqual([{ code: 0, signal: null }, '']);
  });

  it('passes the check with every commented key in it, where their files exist', async () => {
    const text = uncommented(example);
    expect(text).toMatch(/^plugins:/m);
    expect(await objectionsTo(text.replaceAll('must exist', ''), furnishedFolder())).toEqual([]);
  });
});
