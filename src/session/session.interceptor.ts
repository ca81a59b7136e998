import { Inject, Injectable } from '@nestjs/common';
import type { Attempt, Exchange } from '../contracts/exchange.js';
import {
  Order,
  RegisterInterceptor,
  type ExchangeInterceptor,
  type Target,
} from '../contracts/interceptor.js';
import { HistoryChain } from '../common/history/history-chain.js';
import { SessionRegistry } from './session.registry.js';

const NOTE = Symbol('session-header');

interface Note {
  readonly messages: Buffer;
  readonly id: string | undefined;
}

/** Sets the provider's session header from the history of the final body (spec 01 §6). Keeps nothing itself. */
@Injectable()
@RegisterInterceptor({ id: 'session-header', order: Order.session })
export class SessionInterceptor implements ExchangeInterceptor {
  constructor(@Inject(SessionRegistry) private readonly registry: SessionRegistry) {}

  appliesTo({ upstream }: Target): boolean {
    return upstream.provider.sessionHeader !== null;
  }

  onAttempt({ exchange, upstream, body, headers, probe }: Attempt): void {
    const name = upstream.provider.sessionHeader;
    if (name === null) return;
    const messages = body.raw('messages');
    if (messages?.[0] !== 0x5b) return;
    const id = probe ? HistoryChain.idOf(messages) : this.#idFor(exchange, messages);
    if (id !== undefined) headers.set(name, id);
  }

  /** Several attempts of one exchange mostly carry the same history: it is hashed once. */
  #idFor(exchange: Exchange, messages: Buffer): string | undefined {
    const note = exchange.notes.get(NOTE) as Note | undefined;
    if (note?.messages.equals(messages)) return note.id;
    const id = this.registry.resolve(messages, exchange.consumer?.id ?? '');
    exchange.notes.set(NOTE, { messages, id } satisfies Note);
    return id;
  }
}
