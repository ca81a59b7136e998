import type { Attempt } from '../contracts/exchange.js';
import type { Stage } from './compiled-target.js';
import type { PluginGuard } from './plugin.guard.js';

/**
 * The `onAttempt` stages of one attempt from the first that is asynchronous. Lives until they are done or nobody waits for
 * them any more: then no further one is called.
 */
export class Shaping {
  readonly done: Promise<void>;
  #stage: string;
  #abandoned = false;

  /** `waiting` is what the stage at `index` gave back. */
  constructor(
    private readonly stages: readonly Stage<'onAttempt'>[],
    index: number,
    waiting: PromiseLike<void>,
    private readonly attempt: Attempt,
    private readonly guard: PluginGuard,
  ) {
    this.#stage = (stages[index] as Stage<'onAttempt'>).id;
    this.done = this.#run(index, waiting);
  }

  /** Id of the plugin whose hook runs. */
  get plugin(): string {
    return this.#stage;
  }

  abandon(): void {
    this.#abandoned = true;
  }

  async #run(first: number, waiting: PromiseLike<void>): Promise<void> {
    await this.#guarded(() => waiting);
    for (const { id, hooks } of this.stages.slice(first + 1)) {
      if (this.#abandoned || this.attempt.exchange.signal.aborted) return;
      this.#stage = id;
      await this.#guarded(() => hooks.onAttempt(this.attempt));
    }
  }

  async #guarded(hook: () => void | PromiseLike<void>): Promise<void> {
    try {
      await hook();
    } catch (error) {
      // Traps: what was abandoned has been told already, and its attempt is over; and a hook that heeds the signal of its exchange
      // ends before anybody has noticed that it is to be abandoned.
      const { exchange } = this.attempt;
      if (!this.#abandoned && !exchange.signal.aborted)
        throw this.guard.refusal(exchange.id, this.#stage, 'onAttempt', error);
    }
  }
}
