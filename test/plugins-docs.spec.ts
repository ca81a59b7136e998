import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import { formatProblem } from '../src/config/loader/config-problem.js';
import { loadConfig } from '../src/config/loader/load-config.js';

const root = fileURLToPath(new URL('../', import.meta.url));
const read = (path: string): string => readFileSync(`${root}${path}`, 'utf8');
const page = read('docs/plugins.md');

const blocks = (language: string, text = page): string[] =>
  [...text.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\`$`, 'gm'))].map(
    ([, code]) => code ?? '',
  );

const WHOLE_FILE = /^\/\/ (examples\/plugins\/[a-z.-]+\.ts)\n/;
const files = blocks('ts').filter((code) => WHOLE_FILE.test(code));
const pages = readdirSync(`${root}docs`).filter((name) => name.endsWith('.md'));
const snippets = pages
  .flatMap((name) => blocks('ts', read(`docs/${name}`)))
  .filter((code) => !WHOLE_FILE.test(code));

/** Type errors of these texts, each as if it were a file of examples/plugins. Needs a build: they import its types. */
function typeErrors(codes: readonly string[]): string[] {
  const settings = ts.readConfigFile(`${root}tsconfig.json`, (path) => ts.sys.readFile(path))
    .config as object;
  const { options } = ts.parseJsonConfigFileContent(settings, ts.sys, root);
  const texts = new Map(codes.map((code, i) => [`${root}examples/plugins/docs-snippet-${i}.ts`, code]));
  const host = ts.createCompilerHost({ ...options, noEmit: true });
  const real = ts.createCompilerHost({ ...options, noEmit: true });
  host.fileExists = (path) => texts.has(path) || real.fileExists(path);
  host.readFile = (path) => texts.get(path) ?? real.readFile(path);
  host.getSourceFile = (path, ...rest) => {
    const text = texts.get(path);
    return text === undefined
      ? real.getSourceFile(path, ...rest)
      : ts.createSourceFile(path, text, ts.ScriptTarget.ES2023, true);
  };
  const program = ts.createProgram([...texts.keys()], { ...options, noEmit: true }, host);
  return [...texts.keys()].flatMap((path) => {
    const source = program.getSourceFile(path);
    const found = [...program.getSyntacticDiagnostics(source), ...program.getSemanticDiagnostics(source)];
    return found.map(({ messageText }) => `${path}: ${ts.flattenDiagnosticMessageText(messageText, ' ')}`);
  });
}

describe('docs/plugins.md', () => {
  it('shows the example files as they are', () => {
    const shown = files.map((code) => WHOLE_FILE.exec(code)?.[1] ?? '');
    expect(shown).toEqual(
      ['audit', 'word-filter', 'team-header', 'team-header.spec'].map(
        (name) => `examples/plugins/${name}.ts`,
      ),
    );
    for (const code of files) {
      const path = WHOLE_FILE.exec(code)?.[1] ?? '';
      expect(code.replace(WHOLE_FILE, '').trim()).toBe(read(path).trim());
    }
  });

  it('and all other pages have further code that compiles', { timeout: 60_000 }, () => {
    expect(snippets.length).toBeGreaterThan(2);
    expect(typeErrors(snippets)).toEqual([]);
    // The check itself can see a mistake.
    expect(
      typeErrors(["import { Nothing } from 'llm-proxy/contracts';\nexport const nothing = Nothing;\n"]),
    ).not.toEqual([]);
  });

  it.each(blocks('yaml'))('has configuration that loads: %#', (yaml) => {
    const text = `
providers: [{ id: p, url: 'http://127.0.0.1:1' }]
upstreams: [{ id: u, provider: p, model: real }]
models: [{ name: m, upstreams: [u] }]
${yaml}`;
    const result = loadConfig({ text, directory: root }, {});
    expect(result.ok ? [] : result.problems.map(formatProblem)).toEqual([]);
  });
});
