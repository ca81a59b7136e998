import { generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';
import { isIPv4 } from 'node:net';

export interface CertificateOptions {
  readonly name: string;
  /** Host names and IPv4 addresses it is for. */
  readonly hosts?: readonly string[];
  /** Who signs it; absent = itself. */
  readonly issuer?: Certificate;
  readonly isAuthority?: boolean;
  readonly notBefore?: Date;
  readonly notAfter?: Date;
}

/** A certificate with its private key, in PEM. */
export interface Certificate {
  readonly name: string;
  readonly cert: string;
  readonly key: string;
  readonly privateKey: KeyObject;
}

const DAY_MS = 86_400_000;

/** Makes an X.509 v3 certificate (RFC 5280) on P-256. Node can read certificates, but not make them. */
export function makeCertificate(options: CertificateOptions): Certificate {
  const { issuer, name } = options;
  const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const notBefore = options.notBefore ?? new Date(Date.now() - DAY_MS);
  const notAfter = options.notAfter ?? new Date(Date.now() + DAY_MS);
  const toBeSigned = sequence(
    explicit(0, integer(Buffer.from([2]))),
    integer(Buffer.concat([Buffer.from([1]), randomBytes(8)])),
    ECDSA_WITH_SHA256,
    nameOf(issuer?.name ?? name),
    sequence(utcTime(notBefore), utcTime(notAfter)),
    nameOf(name),
    pair.publicKey.export({ type: 'spki', format: 'der' }),
    explicit(3, sequence(...extensionsOf(options))),
  );
  const signature = sign('sha256', toBeSigned, issuer?.privateKey ?? pair.privateKey);
  const der = sequence(
    toBeSigned,
    ECDSA_WITH_SHA256,
    tagged(0x03, Buffer.concat([Buffer.from([0]), signature])),
  );
  const lines = der.toString('base64').match(/.{1,64}/g) ?? [];
  return {
    name,
    cert: `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`,
    key: pair.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    privateKey: pair.privateKey,
  };
}

function extensionsOf({ hosts = [], isAuthority = false }: CertificateOptions): Buffer[] {
  const constraints = sequence(...(isAuthority ? [TRUE] : []));
  const extensions = [sequence(oid(0x55, 0x1d, 0x13), TRUE, octets(constraints))];
  if (hosts.length > 0) {
    const names = hosts.map((host) =>
      isIPv4(host) ? tagged(0x87, Buffer.from(host.split('.').map(Number))) : tagged(0x82, Buffer.from(host)),
    );
    extensions.push(sequence(oid(0x55, 0x1d, 0x11), octets(sequence(...names))));
  }
  return extensions;
}

const oid = (...bytes: number[]): Buffer => tagged(0x06, Buffer.from(bytes));
const octets = (content: Buffer): Buffer => tagged(0x04, content);
const integer = (content: Buffer): Buffer => tagged(0x02, content);
const sequence = (...parts: Buffer[]): Buffer => tagged(0x30, Buffer.concat(parts));
const explicit = (number: number, content: Buffer): Buffer => tagged(0xa0 + number, content);
const nameOf = (text: string): Buffer =>
  sequence(tagged(0x31, sequence(oid(0x55, 0x04, 0x03), tagged(0x0c, Buffer.from(text)))));
/** `YYMMDDHHMMSSZ`. */
const utcTime = (date: Date): Buffer =>
  tagged(0x17, Buffer.from(`${date.toISOString().slice(2, 19).replace(/[-:T]/g, '')}Z`));
const TRUE = tagged(0x01, Buffer.from([0xff]));
const ECDSA_WITH_SHA256 = sequence(oid(0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02));

function tagged(tag: number, content: Buffer): Buffer {
  const { length } = content;
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
}
