import { Injectable } from '@nestjs/common';
import { AffinityService } from '../affinity/affinity.service.js';
import { ConfigStore } from '../config/config.store.js';
import type { OperationName } from '../contracts/operation.js';
import type { Plan } from '../routing/plan.js';
import { Attachment, homeward } from './attachment.js';
import type { GatewayExchange } from './gateway-exchange.js';

/** What is said in turns, with all that was said before in each. */
const CONVERSATIONS: ReadonlySet<OperationName> = new Set(['chat', 'messages']);

/** Attaches requests to the upstream that served their conversation before. Keeps nothing. */
@Injectable()
export class AffinityDesk {
  readonly #told: boolean;

  constructor(
    private readonly affinity: AffinityService,
    store: ConfigStore,
  ) {
    this.#told = store.current.server.expose !== 'none';
  }

  /** The plan with that upstream before the others of its tier. Only for a model with affinity. */
  attach(exchange: GatewayExchange, plan: Plan): Plan {
    if (!CONVERSATIONS.has(exchange.operation)) return plan;
    const recollection = this.affinity.recall(exchange);
    const found = homeward(plan, recollection?.place ?? null);
    exchange.attachment = new Attachment(this.affinity, recollection, found.home, this.#told);
    return found.plan;
  }
}
