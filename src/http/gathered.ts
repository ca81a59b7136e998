/** Smaller pieces are copied together; above this the copy costs more than it saves. */
const SMALL_BYTES = 16 * 1024;
/** What is copied together is not larger than this and one small piece. */
const GATHERED_BYTES = 64 * 1024;

/**
 * The same bytes in few pieces. Trap: a socket takes no more than some hundred thousand pieces at once (`EINVAL`), and
 * then nothing of what waits for it is ever written.
 */
export function gathered(pieces: readonly Buffer[]): readonly Buffer[] {
  if (pieces.length <= 1) return pieces;
  const result: Buffer[] = [];
  let small: Buffer[] = [];
  let bytes = 0;
  const close = (): void => {
    if (small.length > 0)
      result.push(small.length === 1 ? (small[0] as Buffer) : Buffer.concat(small, bytes));
    small = [];
    bytes = 0;
  };
  for (const piece of pieces) {
    if (piece.length < SMALL_BYTES) {
      small.push(piece);
      bytes += piece.length;
      if (bytes >= GATHERED_BYTES) close();
    } else {
      close();
      result.push(piece);
    }
  }
  close();
  return result;
}
