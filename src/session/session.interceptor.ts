import { Inject, Injectable } from '@nestjs/common';
import type { Attempt, Exchange } from '../contracts/exchange.js';
import {
  Order,
  RegisterInterceptor,
  type ExchangeInterceptor,
  type Target,
} from '../contracts/interceptor.js';
import { HistoryChain } from '../common/history/history-chain.js';
import { SharedSessions } from './shared-sessions.js';
import { SessionRegistry } from './session.registry.js';

const NOTE = Symbol('session-header');

interface Note {
  readonly messages: Buffer;
  readonly id: string | undefined;
}

/** Sets the provider's session header from the history of the final body. Keeps nothing itself. */
@Injectable()
@RegisterInterceptor({ id: 'session-header', order: Order.session })
export class SessionInterceptor implements ExchangeInterceptor {
  constructor(
    @Inject(SessionRegistry) private readonly registry: SessionRegistry,
    @Inject(SharedSessions) private readonly shared: SharedSessions | null = null,
  ) {}

  appliesTo({ upstream }: Target): boolean {
    return upstream.provider.sessionHeader !== null;
  }

  onAttempt({ exchange, upstream, body, headers, probe }: Attempt): void | Promise<void> {
    const name = upstream.provider.sessionHeader;
    if (name === null) return;
    const messages = body.raw('messages');
    if (messages?.[0] !== 0x5b) return;
    if (!probe && this.shared?.ok === true) return this.#askOthers(exchange, messages, name, headers);
    const id = probe ? HistoryChain.idOf(messages) : this.#idFor(exchange, messages);
    if (id !== undefined) headers.set(name, id);
  }

  /** Any replica may have had the turns before this one. */
  async #askOthers(
    exchange: Exchange,
    messages: Buffer,
    name: string,
    headers: Attempt['headers'],
  ): Promise<void> {
    const note = noteOf(exchange, messages);
    let id = note === null ? await this.shared?.resolve(messages, ownerOf(exchange)) : note.id;
    if (id === null) id = this.registry.resolve(messages, ownerOf(exchange));
    exchange.notes.set(NOTE, { messages, id } satisfies Note);
    if (id !== undefined) headers.set(name, id);
  }

  #idFor(exchange: Exchange, messages: Buffer): string | undefined {
    const note = noteOf(exchange, messages);
    if (note !== null) return note.id;
    const id = this.registry.resolve(messages, ownerOf(exchange));
    exchange.notes.set(NOTE, { messages, id } satisfies Note);
    return id;
  }
}

/** Several attempts of one exchange mostly carry the same history: it is hashed once. */
function noteOf(exchange: Exchange, messages: Buffer): Note | null {
  const note = exchange.notes.get(NOTE) as Note | undefined;
  return note?.messages.equals(messages) === true ? note : null;
}

/** '' where callers are not told apart. */
function ownerOf({ consumer }: Exchange): string {
  return consumer?.id ?? '';
}
