/** Above this the copy costs more than it saves. */
export const CHUNK_LIMIT_BYTES = 4096;

const HEADS: (string | undefined)[] = [];

/** The bytes as one chunk of HTTP/1.1, a text of one character a byte. Not for an empty chunk: that is the last one. */
export function chunkOf(bytes: Buffer): string {
  const head = (HEADS[bytes.length] ??= `${bytes.length.toString(16)}\r\n`);
  return `${head}${bytes.toString('latin1')}\r\n`;
}
