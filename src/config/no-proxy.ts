import { BlockList, isIP } from 'node:net';
import { domainToASCII } from 'node:url';

/** The entries of `NO_PROXY`, compiled. Pure: names are never resolved. */
export class NoProxyList {
  readonly #entries: readonly Matcher[];

  private constructor(
    entries: readonly Matcher[],
    /** Entries that can match nothing. */
    readonly unusable: readonly string[],
  ) {
    this.#entries = entries;
  }

  /** Entries are separated by commas or white space. */
  static parse(text: string): NoProxyList {
    const entries: Matcher[] = [];
    const unusable: string[] = [];
    for (const written of text.split(/[,\s]+/)) {
      if (written === '') continue;
      const matcher = compile(written);
      if (matcher === null) unusable.push(written);
      else entries.push(matcher);
    }
    return new NoProxyList(entries, unusable);
  }

  /** Whether this host is reached directly: it is in the list, or it is this machine. */
  excludes({ hostname, port, protocol }: URL): boolean {
    const host = plainHost(hostname);
    if (isLoopback(host)) return true;
    const number = port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port);
    return this.#entries.some(
      (entry) => (entry.port === null || entry.port === number) && entry.matches(host),
    );
  }
}

interface Matcher {
  /** Null = any. */
  readonly port: number | null;
  matches(host: string): boolean;
}

function compile(written: string): Matcher | null {
  const { name, port } = splitPort(written.toLowerCase());
  if (port !== null && (port < 1 || port > 65535)) return null;
  if (name === '*') return { port, matches: () => true };
  const addresses = addressList(name);
  if (addresses !== null) return { port, matches: (host) => contains(addresses, host) };
  return domainMatcher(name, port);
}

/** `host`, `host:port`, `[v6]`, `[v6]:port`, or a v6 address without brackets. */
function splitPort(written: string): { name: string; port: number | null } {
  const bracketed = /^\[([^\]]*)\](?::(\d{1,5}))?$/.exec(written);
  if (bracketed !== null)
    return { name: bracketed[1] ?? '', port: bracketed[2] === undefined ? null : Number(bracketed[2]) };
  const plain = /^([^:]*):(\d{1,5})$/.exec(written);
  return plain === null ? { name: written, port: null } : { name: plain[1] ?? '', port: Number(plain[2]) };
}

/** An address, or a range such as 10.0.0.0/8; null for anything else. */
function addressList(name: string): BlockList | null {
  const [address = '', bits, more] = name.split('/');
  const version = isIP(address);
  if (version === 0 || more !== undefined) return null;
  const family = version === 4 ? 'ipv4' : 'ipv6';
  const list = new BlockList();
  if (bits === undefined) {
    list.addAddress(address, family);
    return list;
  }
  if (!/^\d{1,3}$/.test(bits) || Number(bits) > (version === 4 ? 32 : 128)) return null;
  list.addSubnet(address, Number(bits), family);
  return list;
}

function contains(list: BlockList, host: string): boolean {
  const version = isIP(host);
  return version !== 0 && list.check(host, version === 4 ? 'ipv4' : 'ipv6');
}

/** `example.com` and `.example.com`: the name and all below it. `*.example.com`: only those below it. */
function domainMatcher(written: string, port: number | null): Matcher | null {
  const belowOnly = written.startsWith('*.');
  const given = plainHost(written.slice(belowOnly ? 2 : written.startsWith('.') ? 1 : 0));
  // Hosts of urls are in their ASCII form.
  const name = /[\u0080-\uffff]/.test(given) ? domainToASCII(given) : given;
  if (!/^[\w-]+(\.[\w-]+)*$/.test(name) || /^\d+(\.\d+)*$/.test(name)) return null;
  const below = `.${name}`;
  return { port, matches: (host) => host.endsWith(below) || (!belowOnly && host === name) };
}

/** Without the brackets of an IPv6 address and the dot that ends a full name. */
function plainHost(hostname: string): string {
  const host = hostname.startsWith('[') ? hostname.slice(1, -1) : hostname;
  return host.length > 1 && host.endsWith('.') ? host.slice(0, -1) : host;
}

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet('127.0.0.0', 8, 'ipv4');
LOOPBACK.addAddress('::1', 'ipv6');

/** What runs on this machine is beyond the reach of a proxy on another one. */
function isLoopback(host: string): boolean {
  return host === 'localhost' || host.endsWith('.localhost') || contains(LOOPBACK, host);
}
