import { Inject, Injectable } from '@nestjs/common';
import { QuietPart } from '../state/quiet-part.js';
import { ignoreUnavailable, SHARED_STATE, type SharedState } from '../state/shared-state.js';
import type { StoreEvent } from '../state/shared-types.js';
import { AffinityRegistry, type Place, type Recollection } from './affinity.registry.js';

const TOPIC = 'affinity';
/** The longest prefixes of a history are what its next turn asks for. */
const PREFIXES_TOLD = 64;

/**
 * Tells other replicas where a conversation was served, and learns it from them: its next turn goes to the same upstream
 * wherever it comes. What was told before a replica started it does not know. Keeps nothing itself.
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

  joined(): void {}

  happened(event: StoreEvent): void {
    if (event.kind !== 'told' || event.topic !== TOPIC) return;
    const [scope, digests, upstream, key] = JSON.parse(event.text) as [
      string,
      string[],
      string,
      string | null,
    ];
    this.registry.remember(
      { place: null, scope: bytesOf(scope), digests: digests.map(bytesOf) },
      { upstream, key },
    );
  }
}

/** Hashes are strings of bytes. */
const textOf = (bytes: string): string => Buffer.from(bytes, 'latin1').toString('base64');
const bytesOf = (text: string): string => Buffer.from(text, 'base64').toString('latin1');
