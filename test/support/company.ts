import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TlsOptions } from 'node:tls';
import { onTestFinished } from 'vitest';
import { type Certificate, makeCertificate } from './certificates.js';
import { ScriptedUpstream } from './scripted-upstream.js';

/** A private certificate authority, as companies have one, and what it signed. */
export interface Company {
  readonly authority: Certificate;
  /** For 127.0.0.1 and provider.test. */
  readonly server: Certificate;
  readonly client: Certificate;
}

let company: Company | null = null;

/** Made once for each file of tests. */
export function theCompany(): Company {
  if (company !== null) return company;
  const authority = makeCertificate({ name: 'Company CA', isAuthority: true });
  const server = makeCertificate({
    name: 'server',
    hosts: ['127.0.0.1', 'provider.test'],
    issuer: authority,
  });
  const client = makeCertificate({ name: 'client', issuer: authority });
  return (company = { authority, server, client });
}

/** A temporary directory with these files. Lives for one test. */
export function directoryWith(files: Readonly<Record<string, string>>): string {
  const directory = mkdtempSync(join(tmpdir(), 'llm-proxy-files-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(directory, name), text);
  return directory;
}

/** `ca.pem`, `client.pem` and `client.key`. */
export function companyDirectory(): string {
  const { authority, client } = theCompany();
  return directoryWith({ 'ca.pem': authority.cert, 'client.pem': client.cert, 'client.key': client.key });
}

/** A provider that speaks TLS with this certificate; with `mutual` it wants one of the company's clients. */
export async function secureUpstream(
  certificate: Certificate = theCompany().server,
  mutual = false,
  more: TlsOptions = {},
): Promise<ScriptedUpstream> {
  const { cert, key } = certificate;
  const wanted = mutual
    ? { requestCert: true, rejectUnauthorized: true, ca: theCompany().authority.cert }
    : {};
  const upstream = await ScriptedUpstream.start({ cert, key, ...wanted, ...more });
  onTestFinished(() => upstream.stop());
  return upstream;
}
