import { shownValue } from '../common/text/shown-value.js';
import type { ProxyConfig } from './gateway-config.js';
import { NoProxyList } from './no-proxy.js';
import { proxyUrlProblem } from './schema/proxy-rule.js';

type Variables = Readonly<Record<string, string | undefined>>;

/** The usual order: lower case before upper case, the scheme's own before the one for all. Empty = unset. */
const NAMES: Readonly<Record<string, readonly string[]>> = {
  'https:': ['https_proxy', 'HTTPS_PROXY', 'all_proxy', 'ALL_PROXY'],
  'http:': ['http_proxy', 'HTTP_PROXY', 'all_proxy', 'ALL_PROXY'],
};

/** The proxies that the environment names. Lives for one load of the configuration. */
export class ProxyEnvironment {
  /** One line each, without a word of the value: it may hold a password. */
  readonly problems: readonly string[];
  readonly warnings: readonly string[];
  readonly #proxies = new Map<string, ProxyConfig>();
  readonly #direct: NoProxyList;

  constructor(variables: Variables) {
    const problems = new Set<string>();
    for (const [scheme, names] of Object.entries(NAMES)) {
      const set = firstSet(variables, names);
      if (set === null) continue;
      // As curl takes it: a host and a port are enough.
      const url = set.value.includes('://') ? set.value : `http://${set.value}`;
      const problem = proxyUrlProblem(url);
      if (problem === null) this.#proxies.set(scheme, proxyOf(url, set.name));
      else problems.add(`the environment variable ${set.name}: ${problem}`);
    }
    const exceptions = firstSet(variables, ['no_proxy', 'NO_PROXY']);
    this.#direct = NoProxyList.parse(exceptions?.value ?? '');
    this.problems = [...problems];
    this.warnings = this.#direct.unusable.map(
      (entry) =>
        `the environment variable ${exceptions?.name ?? ''}: the entry "${shownValue(entry)}" matches nothing; write a host name, ".suffix", an address, a range such as 10.0.0.0/8, or "*"`,
    );
  }

  /** Null = a direct connection. */
  proxyFor(url: URL): ProxyConfig | null {
    const proxy = this.#proxies.get(url.protocol);
    return proxy === undefined || this.#direct.excludes(url) ? null : proxy;
  }
}

/** Of a url in which nothing is wrong. */
export function proxyOf(written: string, source: string): ProxyConfig {
  const url = new URL(written.trim());
  const { username, password, origin, protocol, host } = url;
  const isOpen = username === '' && password === '';
  const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return {
    origin,
    authorization: isOpen ? null : `Basic ${Buffer.from(pair, 'utf8').toString('base64')}`,
    shown: `${protocol}//${isOpen ? '' : '…@'}${host}`,
    source,
  };
}

function firstSet(variables: Variables, names: readonly string[]): { name: string; value: string } | null {
  for (const name of names) {
    const value = variables[name]?.trim() ?? '';
    if (value !== '') return { name, value };
  }
  return null;
}
