import { Inject, Injectable } from '@nestjs/common';
import type { Exchange } from '../contracts/exchange.js';
import { AffinityRegistry, type Place, type Recollection } from './affinity.registry.js';
import { SharedAffinity } from './shared-affinity.js';
import { Scopes } from './scope.js';

const OPEN_ARRAY = 0x5b;

/** Finds where a conversation was served, and remembers where it was. Keeps nothing itself. */
@Injectable()
export class AffinityService {
  readonly #scopes = new Scopes();

  constructor(
    @Inject(AffinityRegistry) private readonly registry: AffinityRegistry,
    @Inject(SharedAffinity) private readonly others: SharedAffinity | null = null,
  ) {}

  /** Null where the request has no messages to know it by. */
  recall({ body, consumer, model }: Exchange): Recollection | null {
    const messages = body.raw('messages');
    if (messages?.[0] !== OPEN_ARRAY) return null;
    // What providers put before all messages; `system` is Anthropic's.
    const before = [body.raw('tools'), body.raw('system')];
    return this.registry.recall(this.#scopes.of(consumer?.id ?? '', model.name, before), messages);
  }

  remember(recollection: Recollection, place: Place): void {
    this.registry.remember(recollection, place);
    this.others?.remember(recollection, place);
  }
}
