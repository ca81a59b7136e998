import { Inject, Injectable } from '@nestjs/common';
import type { JsonDocument } from '../common/json/json-document.js';
import type { Attempt, Exchange } from '../contracts/exchange.js';
import {
  type ExchangeInterceptor,
  Order,
  RegisterInterceptor,
  type Target,
} from '../contracts/interceptor.js';
import type { StreamObserver } from '../contracts/stream.js';
import { IssuedIds } from './issued-ids.js';

/** The events that bring the response itself: the first one, so that a stream that is left early counts too, and the last. */
const NEEDLES = ['"response.created"', '"response.completed"', '"response.incomplete"'] as const;

/** Notes which ids an answer of `/responses` issued, and to whom. Keeps nothing itself. */
@Injectable()
@RegisterInterceptor({ id: 'issued-ids', order: Order.observe })
export class IssuedIdsInterceptor implements ExchangeInterceptor {
  constructor(@Inject(IssuedIds) private readonly issued: IssuedIds) {}

  appliesTo({ operation }: Target): boolean {
    return operation === 'responses';
  }

  observe({ consumer }: Exchange, { upstream }: Attempt): StreamObserver {
    const learn = (answer: JsonDocument) => this.issued.learn(answer, consumer, upstream.id);
    return {
      needles: NEEDLES,
      observe: ({ json }) => {
        const response = json?.object('response');
        if (response !== undefined) learn(response);
      },
      whole: learn,
    };
  }
}
