import 'reflect-metadata';
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { formatProblem } from '../src/config/loader/config-problem.js';
import { loadConfig } from '../src/config/loader/load-config.js';
import { NoProxyList } from '../src/config/no-proxy.js';
import { ProxyEnvironment } from '../src/config/proxy-environment.js';
import { startupLines } from '../src/config/startup-lines.js';
import { directoryWith, theCompany } from './support/company.js';

const page = readFileSync(new URL('../docs/network.md', import.meta.url), 'utf8');
const blocks = (language: string): string[] =>
  [...page.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\`$`, 'gm'))].map(
    ([, text]) => text ?? '',
  );
const environment = { ROUTER_API_KEY: 'sk-network-0123456789' };

describe('docs/network.md', () => {
  it.each(blocks('yaml'))('has configuration that loads without a warning: %#', (text) => {
    const { authority, client } = theCompany();
    const directory = directoryWith({
      'company-ca.pem': authority.cert,
      'client.pem': client.cert,
      'client.key': client.key,
    });
    const result = loadConfig({ text, directory }, { ...environment, PROXY_PASSWORD: 'p%20w' });
    expect(result.ok ? [] : result.problems.map(formatProblem)).toEqual([]);
    expect(result.warnings).toEqual([]);
  });

  it('shows the line of the start as it is', () => {
    const loaded = loadConfig({ text: blocks('yaml')[0] ?? '' }, { ...environment, PROXY_PASSWORD: 'pw' });
    const lines = loaded.ok ? startupLines(loaded.config) : [];
    expect(blocks('text')[0]?.trim()).toBe(lines.at(-1));
  });

  it('has variables for the shell that are understood', () => {
    const variables = Object.fromEntries(
      [...(blocks('sh')[0] ?? '').matchAll(/([A-Z_]+)=(\S+)/g)].map(([, name = '', value = '']) => [
        name,
        value,
      ]),
    );
    const proxies = new ProxyEnvironment(variables);
    expect([...proxies.problems, ...proxies.warnings]).toEqual([]);
    expect(proxies.proxyFor(new URL('https://openrouter.ai'))?.origin).toBe('http://proxy.example:3128');
    expect(proxies.proxyFor(new URL('https://llm.internal.example'))).toBeNull();
  });

  it('names entries of NO_PROXY that can match', () => {
    const table = page.slice(page.indexOf('| entry '), page.indexOf('This machine'));
    const entries = [...table.matchAll(/^\| (`[^|]+`) +\|/gm)].flatMap(([, cell]) =>
      (cell ?? '').split(', ').map((each) => each.replaceAll('`', '')),
    );
    expect(entries.length).toBeGreaterThan(9);
    expect(NoProxyList.parse(entries.join(',')).unusable).toEqual([]);
  });

  it('names reasons that stand in the source', () => {
    const source = ['tunnel', 'transport-failure']
      .map((name) => readFileSync(new URL(`../src/upstreams/${name}.ts`, import.meta.url), 'utf8'))
      .join('\n');
    const reasons = [...page.matchAll(/`(?:proxy: )?TLS: ([a-z][a-z -]+)`/g)].map(([, words]) => words ?? '');
    expect(reasons.length).toBeGreaterThan(2);
    for (const words of reasons) expect(source).toContain(words);
    expect(source).toContain('proxy closed the connection without an answer to CONNECT');
  });
});
