import { isIP } from 'node:net';
import { createSecureContext, getCACertificates, type SecureContext } from 'node:tls';
import type { buildConnector as BuildConnector } from 'undici';
import type { ProviderConfig, ProxyConfig, TlsConfig } from '../config/gateway-config.js';
import { ProxyError } from './transport-failure.js';
import { type Connector, tunnelConnector } from './tunnel.js';
import { buildConnector } from './undici.js';

/** How requests reach a provider: over which connections, and in which form. */
export interface ProviderRoute {
  /** Where connections go, or (through a tunnel) end. */
  readonly origin: string;
  readonly connector: BuildConnector.connector;
  /** Path of the provider's url, without a trailing slash. */
  readonly basePath: string;
  /** Null where the provider itself reads the requests. */
  readonly absoluteForm: AbsoluteForm | null;
}

/** What makes a request one that a proxy takes and passes on (RFC 9112 §3.2.2). */
export interface AbsoluteForm {
  /** Of the provider; stands before the path. */
  readonly origin: string;
  /** Flat list of what the proxy needs. */
  readonly headers: readonly string[];
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
  const basePath = url.pathname === '/' ? '' : url.pathname;
  const timeout = limits.connectTimeoutMs;
  if (proxy === null) {
    const connector = connectorOf({ timeout, ...tlsOptions(tls) });
    return { origin: url.origin, connector: asLibraryType(connector), basePath, absoluteForm: null };
  }
  if (url.protocol === 'https:') {
    const connector = tunnelConnector({
      proxy,
      toProxy: proxyConnector(proxy, tls, 0),
      toProvider: connectorOf({ timeout: 0, ...tlsOptions(tls) }),
      timeoutMs: timeout,
      headLimitBytes: limits.headLimitBytes,
    });
    return { origin: url.origin, connector: asLibraryType(connector), basePath, absoluteForm: null };
  }
  const headers = ['host', url.host];
  if (proxy.authorization !== null) headers.push('proxy-authorization', proxy.authorization);
  return {
    origin: proxy.origin,
    connector: asLibraryType(namingTheProxy(proxyConnector(proxy, tls, timeout))),
    basePath,
    absoluteForm: { origin: url.origin, headers },
  };
}

function connectorOf(options: BuildConnector.BuildOptions): Connector {
  return buildConnector({ ...options, allowH2: false }) as unknown as Connector;
}

/** The library's type says that nothing is returned. */
function asLibraryType(connector: Connector): BuildConnector.connector {
  return connector as unknown as BuildConnector.connector;
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
