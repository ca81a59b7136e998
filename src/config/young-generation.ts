import { PerformanceObserver } from 'node:perf_hooks';
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8';

const FLAG = '--semi-space-growth-factor';
/** V8's own: the young generation doubles whenever as much as it holds has survived. */
const DOUBLE = 2;
const STAY = 1;
const MIB = 1024 * 1024;
/**
 * Both halves together; the start alone lets it grow to this. Less makes bodies of a megabyte expensive, more costs memory
 * for each open stream (docs/performance.md).
 */
const LIMIT_BYTES = 32 * MIB;
/** The factor by which a young generation of `size` bytes (both halves) may grow without passing the limit. */
export function growthFactor(size: number): number {
  return size * DOUBLE > LIMIT_BYTES ? STAY : DOUBLE;
}

/**
 * Keeps the young generation of the heap small, unless the caller chose a size. Thousands of open streams are long-lived,
 * small and mostly idle: left to itself (up to 64 MiB for each half) V8 keeps much more memory for each. Its flag for the
 * size is only read when a process begins, so the size is held by the factor of its growth.
 */
export class YoungGeneration {
  readonly #chosen: boolean;
  #factor = DOUBLE;

  /** `options` = what Node was started with. */
  constructor(options: readonly string[]) {
    this.#chosen = options.some((option) => /semi[-_]space/.test(option));
  }

  /** Trap: with another flag V8 refuses compiled code, so this comes when the modules are loaded. */
  limit(): void {
    if (this.#chosen) return;
    // What is read at the start is one long turn, in which nobody could stop a second doubling.
    this.#set(STAY);
    // A collection may let it grow, or shrink where little is allocated.
    new PerformanceObserver(() => this.#fit()).observe({ entryTypes: ['gc'] });
  }

  /** Runs `action` under the flags of the beginning: compiled code is only good for the flags under which it is written. */
  asBegun(action: () => void): void {
    const factor = this.#factor;
    this.#set(DOUBLE);
    action();
    this.#set(factor);
  }

  #fit(): void {
    const space = getHeapSpaceStatistics().find(({ space_name: name }) => name === 'new_space');
    if (space !== undefined) this.#set(growthFactor(space.space_size));
  }

  #set(factor: number): void {
    if (factor === this.#factor) return;
    this.#factor = factor;
    setFlagsFromString(`${FLAG}=${factor}`);
  }
}
