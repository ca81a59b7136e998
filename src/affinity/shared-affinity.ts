import { Inject, Injectable } from '@nestjs/common';
import { QuietPart } from '../state/quiet-part.js';
import { ignoreUnavailable, SHARED_STATE, type SharedState } from '../state/shared-state.js';
import type { StoreEvent } from '../state/shared-types.js';
import { AffinityRegistry, type Known, type Place, type Recollection } from './affinity.registry.js';

const TOPIC = 'affinity';
const ASKED = 'affinity-asked';
const KNOWN = 'affinity-known';
/** So many prefixes a newcomer is told, in pieces of so many. */
const NEWCOMER_PREFIXES = 4000;
const PIECE = 500;
/** A newcomer is answered by one. */
const ANSWERED_MS = 60_000;
/** The longest prefixes of a history are what its next turn asks for. */
const PREFIXES_TOLD = 64;

/**
 * Tells other replicas where a conversation was served, and learns it from them: its next turn goes to the same upstream
 * wherever it comes. A replica that starts asks for what was told before, and one of the others answers. Keeps nothing itself.
 */
@Injectable()
export class SharedAffinity extends QuietPart {
  constructor(
    private readonly registry: AffinityRegistry,
    @Inject(SHARED_STATE) private readonly state: SharedState | null,
  ) {
    super();
    state?.join(this);
  }

  remember({ digests, scope }: Recollection, place: Place): void {
    if (this.state?.ok !== true) return;
    const told = digests.slice(-PREFIXES_TOLD).map(textOf);
    this.state.store
      .tell(TOPIC, JSON.stringify([textOf(scope), told, place.upstream, place.key]))
      .catch(ignoreUnavailable);
  }

  joined(): void {
    if (this.registry.size === 0) this.state?.store.tell(ASKED, '').catch(ignoreUnavailable);
  }

  happened(event: StoreEvent): void {
    if (event.kind !== 'told') return;
    if (event.topic === ASKED) void this.#answer(event.replica).catch(ignoreUnavailable);
    else if (event.topic === KNOWN) this.registry.learn(knownIn(event.text));
    else if (event.topic === TOPIC) this.#heard(event.text);
  }

  async #answer(newcomer: string): Promise<void> {
    const known = this.registry.recent(NEWCOMER_PREFIXES);
    if (this.state === null || known.length === 0) return;
    const { store } = this.state;
    if (!(await store.lead(`${ASKED}:${newcomer}`, ANSWERED_MS))) return;
    for (let i = 0; i < known.length; i += PIECE)
      await store.tell(KNOWN, textOfKnown(known.slice(i, i + PIECE)));
  }

  #heard(text: string): void {
    const [scope, digests, upstream, key] = JSON.parse(text) as [string, string[], string, string | null];
    this.registry.remember(
      { place: null, scope: bytesOf(scope), digests: digests.map(bytesOf) },
      { upstream, key },
    );
  }
}

/** Hashes are strings of bytes. */
const textOf = (bytes: string): string => Buffer.from(bytes, 'latin1').toString('base64');
const bytesOf = (text: string): string => Buffer.from(text, 'base64').toString('latin1');

function textOfKnown(known: readonly Known[]): string {
  return JSON.stringify(known.map(([prefix, { key, upstream }]) => [textOf(prefix), upstream, key]));
}

function knownIn(text: string): Known[] {
  const told = JSON.parse(text) as [prefix: string, upstream: string, key: string | null][];
  return told.map(([prefix, upstream, key]) => [bytesOf(prefix), { upstream, key }]);
}
