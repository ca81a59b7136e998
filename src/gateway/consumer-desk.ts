import { Inject, Injectable } from '@nestjs/common';
import { consumerBusy, consumerQueueRefused } from '../common/errors/access-errors.js';
import { shuttingDown, stateUnavailable } from '../common/errors/catalogue.js';
import type { Clock } from '../common/time/clock.js';
import type { Caller, WaitsForPlace } from '../consumers/caller.js';
import { CLOCK } from '../contracts/ports.js';
import { QuotaRegistry } from '../quotas/quota.registry.js';
import { ConcurrencyService } from '../upstreams/concurrency/concurrency.service.js';
import type { Waiter } from '../upstreams/concurrency/waiter.js';
import { ClaimDesk } from './claim-desk.js';
import type { GatewayExchange } from './gateway-exchange.js';
import { QuotaDesk } from './quota-desk.js';
import { SHARED_CONSUMERS, type SharedConsumers } from './shared-consumers.js';

/** What a consumer may have at once, and in a window of time: takes it for a request, and gives it back. */
@Injectable()
export class ConsumerDesk {
  constructor(
    @Inject(CLOCK) private readonly clock: Clock,
    private readonly quotas: QuotaRegistry,
    private readonly desk: QuotaDesk,
    private readonly claims: ClaimDesk,
    private readonly concurrency: ConcurrencyService,
    @Inject(SHARED_CONSUMERS) private readonly shared: SharedConsumers | null,
  ) {}

  /**
   * Null where the request may go on at once; else it waits, since its model has a queue. Throws, or rejects with, the
   * answer that ends it.
   */
  enter(exchange: GatewayExchange): Promise<void> | null {
    const { consumer } = exchange;
    if (consumer === null) return null;
    if (this.shared?.rejecting) throw stateUnavailable();
    if (this.shared?.asks(consumer.slots)) return this.#ask(exchange, consumer, this.shared);
    if (!consumer.slots.take()) return this.#wait(exchange, consumer);
    return this.#entered(exchange, consumer);
  }

  /** Once for each exchange, whatever came of it. */
  leave(exchange: GatewayExchange): void {
    if (!exchange.holdsPlace) return;
    exchange.holdsPlace = false;
    const { consumer } = exchange;
    if (consumer === null) return;
    this.shared?.givesBack(consumer.slots);
    consumer.slots.giveBack();
  }

  async #ask(exchange: GatewayExchange, consumer: Caller, shared: SharedConsumers): Promise<void> {
    if (await shared.take(consumer.slots)) await this.#entered(exchange, consumer);
    else await this.#wait(exchange, consumer);
  }

  #entered(exchange: GatewayExchange, consumer: Caller): Promise<void> | null {
    exchange.holdsPlace = true;
    return this.#spend(exchange, consumer);
  }

  /** Throws at once where the model has no queue. */
  #wait(exchange: GatewayExchange, consumer: Caller): Promise<void> {
    const waiter =
      exchange.model.queue === null ? null : (exchange.waiter ??= this.claims.waiterOf(exchange));
    if (waiter === null) throw consumerBusy(consumer.slots.limit);
    return this.#attend(exchange, consumer, waiter);
  }

  async #attend(exchange: GatewayExchange, consumer: Caller, waiter: Waiter): Promise<void> {
    const request: WaitsForPlace = {
      priority: waiter.priority,
      since: this.clock.now(),
      handOver: () => {
        exchange.holdsPlace = true;
        this.concurrency.called(waiter);
      },
      giveUp: () => this.concurrency.leave(waiter),
    };
    const waiting = this.concurrency.attend(waiter, exchange.deadlineAt - this.clock.now());
    consumer.slots.wait(request);
    this.shared?.changed(consumer.slots);
    try {
      const result = waiting instanceof Promise ? await this.claims.attend(exchange, waiting) : waiting;
      if ('unserved' in result)
        throw this.shared?.rejecting ? stateUnavailable() : refusalOf(result.unserved, consumer.slots.limit);
    } finally {
      consumer.slots.leave(request);
      this.shared?.changed(consumer.slots);
    }
    await this.#spend(exchange, consumer);
  }

  #spend(exchange: GatewayExchange, { config, hasQuota }: Caller): Promise<void> | null {
    if (!hasQuota) return null;
    const quotas = this.quotas.setOf('consumer', [config.id], config.quota);
    const opening = quotas === null ? null : this.desk.open(exchange, quotas, "the consumer's");
    if (opening === null) return null;
    return opening.catch((error: unknown) => {
      throw this.shared?.rejecting ? stateUnavailable() : error;
    });
  }
}

function refusalOf(reason: string, limit: number): Error {
  if (reason === 'shutting_down') return shuttingDown();
  return consumerQueueRefused(reason === 'queue_full' ? 'queue_full' : 'queue_timeout', limit);
}
