import { isIP } from 'node:net';
import { createSecureContext, getCACertificates, type SecureContext } from 'node:tls';
import { buildConnector } from 'undici';
import type { ProviderConfig, ProxyConfig, TlsConfig } from '../config/gateway-config.js';
import { ProxyError } from './transport-failure.js';
import { type Connector, tunnelConnector } from './tunnel.js';

/** How requests reach a provider: over which connections, and in which form. */
export interface ProviderRoute {
  /** Where connections go, or (through a tunnel) end. */
  readonly origin: string;
  readonly connector: buildConnector.connector;
  /** What the target of each request begins with; no trailing slash. */
  readonly basePath: string;
  /** Flat list of what the proxy on the way needs in each request; null = nothing. */
  readonly headers: readonly string[] | null;
}

export interface RouteLimits {
  /** For the way to the provider: a proxy and TLS included. */
  readonly connectTimeoutMs: number;
  readonly headLimitBytes: number;
}

type Target = Pick<ProviderConfig, 'url' | 'proxy' | 'tls'>;

/**
 * Direct; through a tunnel where the url is https; or, where it is http, by requests in absolute form that the proxy
 * itself understands: proxies commonly tunnel to port 443 only.
 */
export function routeTo({ url: written, proxy, tls }: Target, limits: RouteLimits): ProviderRoute {
  const url = new URL(written);
  // Joined by hand: `new URL('/x', base)` would drop the path of the base.
  const path = url.pathname === '/' ? '' : url.pathname;
  const timeout = limits.connectTimeoutMs;
  if (proxy === null) {
    const connector = connectorOf({ timeout, ...tlsOptions(tls) });
    return { origin: url.origin, connector: asLibraryType(connector), basePath: path, headers: null };
  }
  if (url.protocol === 'https:') {
    const connector = tunnelConnector({
      proxy,
      toProxy: proxyConnector(proxy, tls, 0),
      toProvider: connectorOf({ timeout: 0, ...tlsOptions(tls) }),
      timeoutMs: timeout,
      headLimitBytes: limits.headLimitBytes,
    });
    return { origin: url.origin, connector: asLibraryType(connector), basePath: path, headers: null };
  }
  const headers = ['host', url.host];
  if (proxy.authorization !== null) headers.push('proxy-authorization', proxy.authorization);
  return {
    origin: proxy.origin,
    connector: asLibraryType(namingTheProxy(proxyConnector(proxy, tls, timeout))),
    basePath: url.origin + path,
    headers,
  };
}

function connectorOf(options: buildConnector.BuildOptions): Connector {
  return buildConnector({ ...options, allowH2: false }) as unknown as Connector;
}

/** The library's type says that nothing is returned. */
function asLibraryType(connector: Connector): buildConnector.connector {
  return connector as unknown as buildConnector.connector;
}

/** To the proxy, whoever is asked for. It is trusted like the provider, but shown no client certificate. */
function proxyConnector(proxy: ProxyConfig, tls: TlsConfig | null, timeout: number): Connector {
  const { protocol, hostname, port, host } = new URL(proxy.origin);
  const address = hostname.startsWith('[') ? hostname.slice(1, -1) : hostname;
  const ca = tls === null || tls.ca === null ? null : { ...tls, client: null, servername: null };
  const connect = connectorOf({ timeout, ...tlsOptions(ca) });
  // Trap: the library names the server after the Host header, which is the provider's.
  const servername = isIP(address) === 0 ? address : undefined;
  return (_target, callback) =>
    connect({ protocol, hostname: address, port, host, ...(servername ? { servername } : {}) }, callback);
}

function namingTheProxy(connect: Connector): Connector {
  return (target, callback) =>
    connect(target, (...result) => {
      const [error] = result;
      if (error === null) callback(...result);
      else callback(ProxyError.from(error), null);
    });
}

/**
 * Trap: given as `ca`, `cert` and `key`, they would be parsed for each connection, and `ca` would replace Node's
 * authorities.
 */
function tlsOptions(tls: TlsConfig | null): { secureContext?: SecureContext; servername?: string } {
  if (tls === null) return {};
  const { ca, client, servername } = tls;
  const trusted = ca === null ? {} : { ca: [...getCACertificates('default'), ca] };
  return {
    ...(ca === null && client === null
      ? {}
      : { secureContext: createSecureContext({ ...trusted, ...client }) }),
    ...(servername === null ? {} : { servername }),
  };
}
