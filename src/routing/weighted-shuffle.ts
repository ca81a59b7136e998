/**
 * Draws the items one after another, each time with a chance in proportion to its weight among those that are left.
 * Weights of 0 come last, in their given order. `random` gives numbers in [0, 1).
 */
export function weightedShuffle<T>(
  items: readonly T[],
  weightOf: (item: T) => number,
  random: () => number,
): T[] {
  const left = items.filter((item) => weightOf(item) > 0);
  const drawn: T[] = [];
  while (left.length > 0) {
    let total = 0;
    for (const item of left) total += weightOf(item);
    let point = random() * total;
    // Trap: sums of floating point numbers may leave the point behind the last item.
    let index = left.findIndex((item) => (point -= weightOf(item)) < 0);
    if (index < 0) index = left.length - 1;
    drawn.push(...left.splice(index, 1));
  }
  drawn.push(...items.filter((item) => weightOf(item) === 0));
  return drawn;
}
