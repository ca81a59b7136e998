/** A view on this many times its size keeps too much. */
const SLACK = 4;
const SPARE_BYTES = 256;

/**
 * Bytes that outlive what they came with: a copy where they are a small part of it. Trap: a view keeps all of the buffer that it
 * is cut from, and what a socket gives may be 64 KiB of which a few bytes are a body.
 */
export function ownBytes(bytes: Buffer): Buffer {
  if (bytes.buffer.byteLength <= SLACK * bytes.length + SPARE_BYTES) return bytes;
  const copy = Buffer.allocUnsafeSlow(bytes.length);
  bytes.copy(copy);
  return copy;
}
