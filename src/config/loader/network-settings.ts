import type { ProxyConfig, TlsConfig } from '../gateway-config.js';
import { ProxyEnvironment, proxyOf } from '../proxy-environment.js';
import type { ProviderSection } from '../schema/provider.section.js';
import { NO_PROXY_WORD } from '../schema/proxy-rule.js';
import { TlsSection } from '../schema/tls.section.js';
import type { Findings } from './findings.js';
import type { Entries, Entry } from './read-entries.js';
import type { Environment } from './substitution.js';
import { TlsFiles } from './tls-files.js';

/** How a provider is reached. */
export interface NetworkSettings {
  readonly proxy: ProxyConfig | null;
  readonly tls: TlsConfig | null;
}

/** Resolves proxies and TLS files of all providers; what is wrong with them, or with the environment, is reported. */
export class NetworkReader {
  readonly #proxies: ProxyEnvironment;
  readonly #files: TlsFiles;

  /** `directory`: where relative paths of the file start. */
  constructor(
    directory: string,
    private readonly findings: Findings,
    environment: Environment,
  ) {
    this.#proxies = new ProxyEnvironment(environment);
    this.#files = new TlsFiles(directory, findings, Date.now());
  }

  read({ providers }: Entries): ReadonlyMap<ProviderSection, NetworkSettings> {
    for (const message of this.#proxies.problems) this.findings.problemOutside(message);
    for (const message of this.#proxies.warnings) this.findings.warningOutside(message);
    return new Map((providers ?? []).map((entry) => [entry.section, this.#of(entry)]));
  }

  #of({ index, section }: Entry<ProviderSection>): NetworkSettings {
    // Trap: a list where a text belongs is told, and yet kept in the section.
    const url = typeof section.url === 'string' ? URL.parse(section.url.trim()) : null;
    return { proxy: this.#proxy(section, url), tls: this.#tls(section, index, url) };
  }

  #proxy({ proxy }: ProviderSection, url: URL | null): ProxyConfig | null {
    if (proxy === undefined) return url === null ? null : this.#proxies.proxyFor(url);
    return typeof proxy !== 'string' || proxy.trim() === NO_PROXY_WORD ? null : proxyOf(proxy, 'proxy');
  }

  #tls({ tls }: ProviderSection, index: number, url: URL | null): TlsConfig | null {
    if (!(tls instanceof TlsSection)) return null;
    const path = ['providers', index, 'tls'];
    const settings = this.#files.read(tls, path);
    if (settings !== null && url?.protocol === 'http:')
      this.findings.problem(
        path,
        'the url is http://, so nothing would be encrypted; use https, or remove tls',
      );
    return settings;
  }
}
