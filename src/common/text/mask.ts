/** Shorter secrets are hidden whole: seven characters of them would give too much away. */
const SHOWN_FROM_LENGTH = 12;

/** What of a secret may be printed: its first three and last four characters with `…` between, or only `…`. */
export function maskSecret(secret: string): string {
  return secret.length < SHOWN_FROM_LENGTH ? '…' : `${secret.slice(0, 3)}…${secret.slice(-4)}`;
}

/** The text with every copy of each secret masked. The empty secret is no secret. */
export function maskIn(text: string, secrets: Iterable<string>): string {
  // Longest first: a secret that begins another one must not leave the other's tail behind.
  const longestFirst = [...secrets].filter((secret) => secret !== '').sort((a, b) => b.length - a.length);
  let masked = text;
  for (const secret of longestFirst) {
    if (!masked.includes(secret)) continue;
    const mask = maskSecret(secret);
    // A function: in a replacement text, `$&` of a secret would bring the secret back.
    masked = masked.replaceAll(secret, () => mask);
  }
  return masked;
}

/**
 * C0, DEL, C1, line and paragraph separators, bidirectional controls, the byte order mark, and surrogates without
 * partner. One character class: linear on any input.
 */
const UNSAFE = /[\p{Cc}\p{Cs}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/gu;
const SHORT_ESCAPES: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' };

/** A text of unknown origin made safe for one line of a log or an error: nothing in it moves, colours or breaks the line. */
export function printable(text: string, limit = 200): string {
  const cut = text.length > limit;
  const shown = cut ? text.slice(0, endBefore(text, limit)) : text;
  const safe = shown.replace(UNSAFE, (character) => SHORT_ESCAPES[character] ?? escapeOf(character));
  return cut ? `${safe}…` : safe;
}

/** Where to cut without tearing a surrogate pair apart. */
function endBefore(text: string, limit: number): number {
  const before = text.charCodeAt(limit - 1);
  return before >= 0xd800 && before <= 0xdbff ? Math.max(0, limit - 1) : limit;
}

function escapeOf(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
