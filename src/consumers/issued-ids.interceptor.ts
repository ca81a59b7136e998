import { Inject, Injectable } from '@nestjs/common';
import type { Attempt, Exchange } from '../contracts/exchange.js';
import {
  type ExchangeInterceptor,
  Order,
  RegisterInterceptor,
  type Target,
} from '../contracts/interceptor.js';
import type { StreamObserver } from '../contracts/stream.js';
import { AnswerIds } from './answer-ids.js';
import { IssuedIds } from './issued-ids.js';

/** The events that bring the response, an item of it or a reference: not the last alone, so that a stream that is left early counts too. */
const NEEDLES = [
  '"response.created"',
  '"response.in_progress"',
  '"response.output_item.added"',
  '"response.output_item.done"',
  '"response.output_text.annotation.added"',
  '"response.completed"',
  '"response.incomplete"',
  '"response.failed"',
] as const;

/** Notes which ids an answer of `/responses` issued, and to whom. Keeps nothing itself. */
@Injectable()
@RegisterInterceptor({ id: 'issued-ids', order: Order.observe })
export class IssuedIdsInterceptor implements ExchangeInterceptor {
  constructor(@Inject(IssuedIds) private readonly issued: IssuedIds) {}

  appliesTo({ operation }: Target): boolean {
    return operation === 'responses';
  }

  observe({ consumer }: Exchange, { upstream, key }: Attempt): StreamObserver {
    const issuer = { upstream: upstream.id, key };
    const learn = (bytes: Buffer | readonly Buffer[] | undefined, ids: AnswerIds) => {
      for (const part of bytes === undefined ? [] : [bytes].flat())
        this.issued.learn(ids.feed(part), consumer, issuer, ids.responseId);
    };
    // An answer that is too large to be held.
    let passing: AnswerIds | null = null;
    return {
      needles: NEEDLES,
      observe: ({ json }) => {
        learn(json?.raw('response'), new AnswerIds('response'));
        learn(json?.raw('item'), new AnswerIds('item'));
        learn(json?.raw('annotation'), new AnswerIds('item'));
      },
      whole: (answer) => learn(answer.parts(), new AnswerIds('response')),
      piece: (bytes) => learn(bytes, (passing ??= new AnswerIds('response'))),
    };
  }
}
