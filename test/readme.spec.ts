import { existsSync, readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type DemoProviders, startDemoProviders } from '../examples/demo/providers.mjs';
import { createApp } from '../src/app.factory.js';
import { formatProblem } from '../src/config/loader/config-problem.js';
import { loadConfig, type LoadResult } from '../src/config/loader/load-config.js';

const root = fileURLToPath(new URL('../', import.meta.url));
const page = readFileSync(`${root}README.md`, 'utf8');
const packageJson = JSON.parse(readFileSync(`${root}package.json`, 'utf8')) as {
  scripts: Record<string, string>;
};
const environment = { ROUTER_API_KEY: 'sk-readme-0123456789' };

const blocks = (language: string): string[] =>
  [...page.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\`$`, 'gm'))].map(
    ([, code]) => code ?? '',
  );
const yaml = blocks('yaml');
const shell = blocks('sh').join('\n');
const curls = [...shell.matchAll(/^curl [^\n]*?(http:\/\/\S+)[\s\S]*?-d '([^']*)'/gm)].map(
  ([, url, body]) => ({
    url: new URL(url ?? ''),
    body: body ?? '',
  }),
);
const minimal = yaml.find((block) => block.includes('\nmodels:')) ?? '';

function load(text: string): LoadResult {
  return loadConfig({ text, directory: root }, environment);
}

function problemsOf(result: LoadResult): string[] {
  return [...(result.ok ? [] : result.problems), ...result.warnings].map(formatProblem);
}

describe('README.md', () => {
  it('is at most 150 lines long', () => {
    expect(page.split('\n').length).toBeLessThanOrEqual(150);
  });

  it('has configuration to copy', () => {
    expect(minimal).not.toBe('');
    expect(yaml.length).toBeGreaterThan(1);
  });

  it.each(yaml)('has configuration that loads without a warning: %#', (block) => {
    expect(problemsOf(load(block.includes('\nmodels:') ? block : `${minimal}\n${block}`))).toEqual([]);
  });

  it.each(
    [...new Set([...page.matchAll(/\]\(([^)#]+)[^)]*\)/g)].map(([, target]) => target ?? ''))].filter(
      (target) => !target.includes('://'),
    ),
  )('links to %s, which exists', (target) => {
    expect(existsSync(root + target)).toBe(true);
  });

  it.each([...new Set([...page.matchAll(/npm run ([a-z:]+)/g)].map(([, name]) => name ?? ''))])(
    'names npm run %s, which exists',
    (name) => {
      expect(Object.keys(packageJson.scripts)).toContain(name);
    },
  );

  it.each([...new Set([...shell.matchAll(/\s-f (\S+)/g)].map(([, path]) => path ?? ''))])(
    'names %s, which exists',
    (path) => {
      expect(existsSync(root + path)).toBe(true);
    },
  );
});

describe('the requests of README.md', () => {
  let providers: DemoProviders;
  let origin: string;
  let close: () => Promise<unknown>;

  beforeAll(async () => {
    providers = await startDemoProviders({ wordMs: 0 });
    const text = minimal
      .replace(/http:\/\/10\.0\.0\.5:8080/, providers.environment['DEMO_GPU_URL'] ?? '')
      .replace(/https:\/\/openrouter\.ai\/api/, providers.environment['DEMO_PAID_URL'] ?? '');
    const loaded = load(text);
    if (!loaded.ok) throw new Error(problemsOf(loaded).join('; '));
    expect(loaded.config.providers.every(({ url }) => url.startsWith('http://127.0.0.1:'))).toBe(true);
    const app = await createApp({ config: loaded.config });
    await app.listen({ host: '127.0.0.1', port: 0 });
    origin = `http://127.0.0.1:${(app.getHttpServer().address() as AddressInfo).port}`;
    close = () => app.close();
  });
  afterAll(async () => {
    await close?.();
    await providers?.close();
  });

  it('are there', () => {
    expect(curls.length).toBeGreaterThan(0);
  });

  it.each(curls)('$url.pathname with $body', async ({ url, body }) => {
    expect(url.origin).toBe('http://127.0.0.1:8100');
    const answer = await fetch(origin + url.pathname, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
    });
    const text = await answer.text();
    expect(answer.status).toBe(200);
    expect(answer.headers.get('x-llm-proxy-upstream')).toBe('local-qwen');
    if ((JSON.parse(body) as { stream?: boolean }).stream === true)
      expect(text).toMatch(/^data: \{[\s\S]*data: \[DONE\]\n\n$/);
  });

  it.each([
    ['GET', '/v1/models'],
    ['GET', '/metrics'],
    ['GET', '/healthz'],
    ['GET', '/readyz'],
  ])('%s %s', async (method, path) => {
    expect(page).toContain(path);
    expect((await fetch(origin + path, { method })).status).toBe(200);
  });
});

describe('docs/dependencies.md', () => {
  const { dependencies, devDependencies } = packageJson as unknown as Record<string, Record<string, string>>;
  const [production = '', development = ''] = readFileSync(`${root}docs/dependencies.md`, 'utf8').split(
    '\n## Development\n',
  );
  const rowsOf = (part: string) =>
    new Map(
      [...part.matchAll(/^\| `([^`]+)` +\| ([^|]+?) +\| ([^|]+?) +\|/gm)].map(([, name, , licence]) => [
        name ?? '',
        licence,
      ]),
    );

  it.each([
    ['production', rowsOf(production), dependencies],
    ['development', rowsOf(development), devDependencies],
  ])('names every %s dependency with its licence, and no other', (_kind, rows, declared) => {
    const licences = Object.keys(declared ?? {}).map((name) => {
      const { license } = JSON.parse(readFileSync(`${root}node_modules/${name}/package.json`, 'utf8')) as {
        license: string;
      };
      return [name, license] as const;
    });
    expect(rows).toEqual(new Map(licences));
  });
});

describe('docs/reliability.md', () => {
  const rows = readFileSync(`${root}docs/reliability.md`, 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('| ') && !line.startsWith('| promise') && !line.startsWith('| ---'))
    .map((line) => line.split(' | ')[1] ?? '');
  let last = '';
  const proofs = rows.flatMap((proof) => {
    const paths = [...proof.matchAll(/`((?:test|src)\/[^`]+)`/g)].map(([, path]) => path ?? '');
    if (!proof.startsWith('the same')) last = paths[0] ?? '';
    const titles = [...proof.matchAll(/"([^"]+)"/g)].map(([, title]) => (title ?? '').replace(/ …$/, ''));
    return [...paths.map((path) => [path, ''] as const), ...titles.map((title) => [last, title] as const)];
  });

  it('names tests', () => {
    expect(proofs.length).toBeGreaterThan(20);
  });

  it.each(proofs)('names a test that exists: %s %s', (path, title) => {
    expect(readFileSync(`${root}${path}`, 'utf8')).toContain(title);
  });
});
