import { isUtf8 } from 'node:buffer';
import { hash } from 'node:crypto';
import { OPEN_OBJECT } from '../json/json-bytes.js';
import { canonOf, canonOfValue, COVERED, MOVED } from './canon.js';
import type { CanonOutput } from './canon-output.js';
import { CanonWriter } from './canon-writer.js';

/** Below this V8's own parser is faster. */
const SMALL_BYTES = 256;
const COVERED_KEYS = COVERED.map((name) => Buffer.from(`"${name}"`));
const MOVED_KEY = Buffer.from(`"${MOVED}"`);

const writer = new CanonWriter();

/** SHA-256 of `before` and the canonical form of a message (see `canonOf`), of one character a byte. */
export function messageDigest(before: string, raw: Buffer): string {
  if (raw.length <= SMALL_BYTES) return hash('sha256', before + canonOf(raw), 'binary');
  const bytes = valid(raw);
  // What is no object stands for itself.
  const canon =
    bytes.find((byte) => byte > 0x20) === OPEN_OBJECT ? writer.write(bytes, before, notCovered) : undefined;
  return digestOf(canon, before, bytes);
}

/** SHA-256 of the canonical form of a value (see `canonOfValue`), of one character a byte. */
export function valueDigest(raw: Buffer): string {
  if (raw.length <= SMALL_BYTES) return hash('sha256', canonOfValue(raw), 'binary');
  const bytes = valid(raw);
  return digestOf(writer.write(bytes, '', moved), '', bytes);
}

function digestOf(canon: Buffer | undefined, before: string, bytes: Buffer): string {
  const digest = hash('sha256', canon ?? Buffer.concat([Buffer.from(before, 'utf8'), bytes]), 'binary');
  writer.release();
  return digest;
}

/** What is no UTF-8 is read as replacement characters. */
function valid(raw: Buffer): Buffer {
  return isUtf8(raw) ? raw : Buffer.from(raw.toString('utf8'), 'utf8');
}

function moved(out: CanonOutput, start: number): boolean {
  return out.isNamed(start, MOVED_KEY);
}

function notCovered(out: CanonOutput, start: number, depth: number): boolean {
  if (depth > 1) return out.isNamed(start, MOVED_KEY);
  for (const name of COVERED_KEYS) if (out.isNamed(start, name)) return false;
  return true;
}
