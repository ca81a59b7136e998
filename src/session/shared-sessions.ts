import { Inject, Injectable } from '@nestjs/common';
import { hexOf, HistoryChain } from '../common/history/history-chain.js';
import { IDLE_MS, PREFIXES_PER_SESSION, seedOf, SESSION_LIMIT, sessionIdOf } from './session.registry.js';
import { ignoreUnavailable, SHARED_STATE, type SharedState } from '../state/shared-state.js';

/** The longest prefixes of a history are what its next turn asks for. */
const PREFIXES_TOLD = 64;
const BOUNDS = { keptMs: IDLE_MS, histories: SESSION_LIMIT, prefixesPerHistory: PREFIXES_PER_SESSION };

/**
 * Sessions that all replicas know: the next turn of a conversation has the same id wherever it comes. Holds no sessions
 * itself; in the store are at most 1000, the least recently used goes first, and each prefix lives for 6 hours after its last
 * use, as a hash.
 */
@Injectable()
export class SharedSessions {
  readonly #chain = new HistoryChain('first_user');

  constructor(@Inject(SHARED_STATE) private readonly state: SharedState | null) {}

  /** Whether the store is to be asked at all. */
  get ok(): boolean {
    return this.state?.ok === true;
  }

  /** `undefined` where there is no message; null where the store could not say. */
  async resolve(messages: Buffer, owner: string): Promise<string | undefined | null> {
    const seed = owner === '' ? '' : seedOf(owner);
    const chain = this.#chain.follow(messages);
    if (chain === undefined) return undefined;
    try {
      const known = await this.#recall(seed, chain.digests, chain.resumed);
      if (known !== '') return known;
      // Here it was hashed before, but nobody knows it any more: then the shorter prefixes are asked too.
      const { digests } = this.#chain.follow(messages, true) ?? chain;
      return await this.#recall(seed, digests, false);
    } catch (error) {
      ignoreUnavailable(error);
      return null;
    }
  }

  #recall(seed: string, digests: readonly string[], onlyKnown: boolean): Promise<string> {
    if (this.state === null) return Promise.resolve('');
    const id = onlyKnown ? '' : sessionIdOf(seed, digests.at(-1) as string);
    const prefixes = digests.slice(-PREFIXES_TOLD).map((digest) => hexOf(seed + digest));
    return this.state.store.recall(prefixes, id, BOUNDS);
  }
}
