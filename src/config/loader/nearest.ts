/** Longer words are cut for the comparison: it costs the product of both lengths. */
const COMPARED_LENGTH = 48;

export interface Nearest {
  readonly word: string;
  /** Likely a slip of the pen rather than another word. */
  readonly close: boolean;
}

/** The known word that takes the fewest edits (insert, delete, replace, swap) to reach; case, `-` and `_` count nothing. */
export function nearest(word: string, known: Iterable<string>): Nearest | null {
  const wanted = plain(word);
  const words = [...known];
  let best: string | null = null;
  let bestDistance = Infinity;
  for (const candidate of words) {
    const other = plain(candidate);
    // The lengths alone already ask for that many edits.
    if (Math.abs(other.length - wanted.length) >= bestDistance) continue;
    const distance = editDistance(wanted, other);
    if (distance >= bestDistance) continue;
    best = candidate;
    bestDistance = distance;
  }
  if (best === null) return null;
  if (bestDistance <= Math.max(1, Math.floor(wanted.length / 3))) return { word: best, close: true };
  return { word: longerOrShorter(wanted, words) ?? best, close: false };
}

/** `prio` for `priority`, `quotas_of_day` for `quota`. */
function longerOrShorter(wanted: string, known: readonly string[]): string | null {
  const LEAST = 3;
  for (const candidate of known) {
    const other = plain(candidate);
    const [short, long] = other.length < wanted.length ? [other, wanted] : [wanted, other];
    if (short.length >= LEAST && long.startsWith(short)) return candidate;
  }
  return null;
}

function plain(word: string): string {
  return word
    .slice(0, COMPARED_LENGTH)
    .toLowerCase()
    .replace(/[-_\s]/g, '');
}

function editDistance(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1];
      let cost = Math.min((last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (last[j - 1] ?? 0) + (same ? 0 : 1));
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      if (swapped) cost = Math.min(cost, (beforeLast[j - 2] ?? 0) + 1);
      row.push(cost);
    }
    beforeLast = last;
    last = row;
  }
  return last[b.length] ?? 0;
}
