import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { createSecureContext } from 'node:tls';
import { shownValue } from '../../common/text/shown-value.js';
import type { TlsConfig } from '../gateway-config.js';
import type { TlsSection } from '../schema/tls.section.js';
import type { ConfigPath } from './config-path.js';
import { oddKind } from './file-kind.js';
import type { Findings } from './findings.js';

/** A bundle of all public authorities is a quarter of it. */
const MAX_BYTES = 1024 * 1024;
const CERTIFICATE = /-----BEGIN (?:TRUSTED )?CERTIFICATE-----[\s\S]*?-----END (?:TRUSTED )?CERTIFICATE-----/g;

/**
 * Reads the files of one `tls` section and checks that a connection can be made with them. What is wrong is reported;
 * no message holds a word of a file. Lives for one run of the loader.
 */
export class TlsFiles {
  constructor(
    private readonly directory: string,
    private readonly findings: Findings,
    private readonly nowMs: number,
  ) {}

  read(section: TlsSection, path: ConfigPath): TlsConfig | null {
    const { servername = null } = section;
    const ca = this.#certificates(section.ca, [...path, 'ca']);
    const cert = this.#certificates(section.cert, [...path, 'cert']);
    const key = this.#key(section.key, [...path, 'key']);
    this.#pair(section, path);
    if (cert !== null && key !== null && !this.#match(cert, key, path)) return null;
    const client = cert === null || key === null ? null : { cert: cert.text, key: key.text };
    if (ca === null && client === null && servername === null) return null;
    const tls = { ca: ca?.text ?? null, client, servername };
    this.#try(tls, path);
    return tls;
  }

  #pair({ cert, key }: TlsSection, path: ConfigPath): void {
    if (cert !== undefined && key === undefined)
      this.findings.problem(
        [...path, 'cert'],
        'a client certificate needs its private key; give it as "key"',
      );
    if (key !== undefined && cert === undefined)
      this.findings.problem([...path, 'key'], 'a private key needs its certificate; give it as "cert"');
  }

  #certificates(file: string | undefined, path: ConfigPath): { text: string; first: X509Certificate } | null {
    const text = this.#text(file, path);
    if (text === null) return null;
    const blocks = text.match(CERTIFICATE) ?? [];
    if (blocks.length === 0) {
      this.#wrong(path, file, 'holds no certificate in PEM form ("-----BEGIN CERTIFICATE-----")');
      return null;
    }
    const certificates = blocks.map(parseCertificate);
    const broken = certificates.indexOf(null);
    const [first] = certificates;
    if (broken >= 0 || first === null || first === undefined) {
      this.#wrong(path, file, `its certificate number ${broken + 1} cannot be read`);
      return null;
    }
    for (const [i, certificate] of certificates.entries()) {
      if (certificate !== null && Date.parse(certificate.validTo) < this.nowMs)
        this.findings.warning(
          path,
          `certificate number ${i + 1} of the file expired on ${isoDay(certificate.validTo)}`,
        );
    }
    return { text: blocks.join('\n'), first };
  }

  #key(file: string | undefined, path: ConfigPath): { text: string; key: KeyObject } | null {
    const text = this.#text(file, path);
    if (text === null) return null;
    if (/-----BEGIN ENCRYPTED PRIVATE KEY-----|^Proc-Type: 4,ENCRYPTED/m.test(text)) {
      this.#wrong(
        path,
        file,
        'the key is encrypted; store it without a passphrase, readable by the service only',
      );
      return null;
    }
    try {
      return { text, key: createPrivateKey({ key: text, format: 'pem' }) };
    } catch {
      this.#wrong(path, file, 'holds no private key in PEM form ("-----BEGIN PRIVATE KEY-----")');
      return null;
    }
  }

  #match(
    cert: { readonly first: X509Certificate },
    key: { readonly key: KeyObject },
    path: ConfigPath,
  ): boolean {
    if (cert.first.checkPrivateKey(key.key)) return true;
    this.findings.problem(
      [...path, 'key'],
      'the private key does not belong to the first certificate of "cert"',
    );
    return false;
  }

  /** What else OpenSSL refuses, such as a key that is too short. */
  #try({ ca, client }: TlsConfig, path: ConfigPath): void {
    try {
      createSecureContext({ ...(ca === null ? {} : { ca }), ...client });
    } catch (error) {
      const { code } = error as { code?: unknown };
      this.findings.problem(
        path,
        `these files cannot be used for TLS (${typeof code === 'string' ? code : 'unknown error'})`,
      );
    }
  }

  #text(file: string | undefined, path: ConfigPath): string | null {
    // Trap: a list where a text belongs is told, and yet kept in the section.
    if (typeof file !== 'string') return null;
    try {
      if (/[\r\n]|-----BEGIN/.test(file)) {
        this.findings.problem(path, 'must be the path of a file in PEM form, not its text');
        return null;
      }
      const absolute = resolve(this.directory, file);
      const odd = oddKind(absolute);
      if (odd !== null) {
        this.#wrong(path, file, `is no regular file but ${odd}`);
        return null;
      }
      const bytes = readFileSync(absolute);
      if (bytes.length <= MAX_BYTES) return bytes.toString('latin1');
      this.#wrong(path, file, 'is larger than 1 MiB');
    } catch (error) {
      this.#wrong(path, file, reasonOf(error));
    }
    return null;
  }

  #wrong(path: ConfigPath, file: string | undefined, message: string): void {
    const absolute = resolve(this.directory, file ?? '');
    this.findings.problem(path, `${message}: ${shownValue(absolute, 300)}`);
  }
}

function parseCertificate(pem: string): X509Certificate | null {
  try {
    return new X509Certificate(pem);
  } catch {
    return null;
  }
}

function isoDay(date: string): string {
  return new Date(date).toISOString().slice(0, 10);
}

function reasonOf(error: unknown): string {
  const { code } = error as { code?: unknown };
  if (code === 'ENOENT' || code === 'ENOTDIR') return 'the file does not exist';
  if (code === 'EISDIR') return 'is a directory, not a file';
  if (code === 'EACCES' || code === 'EPERM') return 'the file cannot be read (permission denied)';
  return `the file cannot be read (${typeof code === 'string' ? code : 'unknown error'})`;
}
