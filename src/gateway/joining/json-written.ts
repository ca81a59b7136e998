/** A value of a joined answer: its bytes, or something that can add them to the parts of the answer. */
export type Written = Buffer | { into(parts: Buffer[]): void };

export const NULL = Buffer.from('null');

const EMPTY_OBJECT = Buffer.from('{}');
const CLOSE = Buffer.from('}');

export function writeInto(parts: Buffer[], value: Written): void {
  if (Buffer.isBuffer(value)) parts.push(value);
  else value.into(parts);
}

/** The parts are added one by one: all of a long list as arguments of one call would not fit on the stack. */
export function objectInto(parts: Buffer[], members: Iterable<readonly [string, Written]>): void {
  let first = true;
  for (const [key, value] of members) {
    parts.push(Buffer.from(`${first ? '{' : ','}${JSON.stringify(key)}:`));
    writeInto(parts, value);
    first = false;
  }
  parts.push(first ? EMPTY_OBJECT : CLOSE);
}
