import { Injectable } from '@nestjs/common';
import type { Attempt } from '../contracts/exchange.js';
import { RegisterInterceptor, type ExchangeInterceptor, type Target } from '../contracts/interceptor.js';
import { Backfill } from './backfill.js';

/**
 * Gives assistant messages of the history the reasoning field their provider wants back. Purely additive:
 * messages that need nothing keep their bytes. Keeps nothing between attempts.
 */
@Injectable()
@RegisterInterceptor({ id: 'reasoning-backfill', order: 160 })
export class ReasoningTransformer implements ExchangeInterceptor {
  appliesTo({ operation, upstream }: Target): boolean {
    return operation === 'chat' && upstream.provider.reasoningField !== null;
  }

  onAttempt({ body, upstream }: Attempt): void {
    const { reasoningField, reasoningEmptyOk } = upstream.provider;
    const messages = reasoningField === null ? undefined : body.items('messages');
    if (reasoningField === null || messages === undefined) return;
    const filled = new Backfill(messages, reasoningField, reasoningEmptyOk).run();
    if (filled !== null) body.setParts('messages', filled);
  }
}
