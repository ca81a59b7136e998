// A seeded source of chance, so that a run that found something can be asked for again.

export class Random {
  #state;

  constructor(seed) {
    this.#state = seed >>> 0 || 1;
  }

  /** In [0, 1); mulberry32. */
  next() {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let t = this.#state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  }

  /** A whole number from `least` to `most`. */
  whole(least, most) {
    return least + Math.floor(this.next() * (most - least + 1));
  }

  chance(probability) {
    return this.next() < probability;
  }

  pick(list) {
    return list[Math.floor(this.next() * list.length)];
  }

  /** One key of an object whose values are weights. */
  weighted(weights) {
    let left = this.next() * Object.values(weights).reduce((sum, weight) => sum + weight, 0);
    for (const [key, weight] of Object.entries(weights)) if ((left -= weight) < 0) return key;
    return Object.keys(weights)[0];
  }

  /** The bytes or text cut at random places into at most `most` pieces, none empty. */
  cut(whole, most) {
    const places = new Set([0, whole.length]);
    for (let i = this.whole(0, most - 1); i > 0; i--) places.add(this.whole(0, whole.length));
    const sorted = [...places].sort((a, b) => a - b);
    return sorted.slice(1).map((end, i) => whole.slice(sorted[i], end));
  }
}
