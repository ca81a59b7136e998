import type { Candidate } from '../routing/candidate.js';
import type { HeldAnswer } from './answer/passable-answer.js';
import type { CompiledTarget } from './compiled-target.js';

/**
 * A prompt that was too long for an upstream: the first such error, which the client gets if no larger model answers,
 * and how large one must be to be tried. Lives with the exchange.
 */
export class TooLong {
  #tokens = 0;

  constructor(
    readonly held: HeldAnswer,
    readonly target: CompiledTarget,
  ) {}

  /** Where a window is not known, no other is known to be larger. */
  exceeded(window: number | null): void {
    this.#tokens = Math.max(this.#tokens, window ?? Infinity);
  }

  larger<C extends Candidate>(candidates: readonly C[]): readonly C[] {
    return candidates.filter(({ upstream }) => (upstream.config.contextWindow ?? 0) > this.#tokens);
  }
}
