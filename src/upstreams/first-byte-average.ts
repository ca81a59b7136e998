/** Weight of the newest time. */
const FACTOR = 0.3;

/** The recent time to the first byte of one upstream, as a moving average. Lives as long as the upstream. */
export class FirstByteAverage {
  #ms: number | null = null;

  /** Null before the first attempt. */
  get ms(): number | null {
    return this.#ms;
  }

  add(ms: number): void {
    this.#ms = this.#ms === null ? ms : this.#ms + FACTOR * (ms - this.#ms);
  }
}
