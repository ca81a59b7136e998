import { Injectable } from '@nestjs/common';
import type { Attempt, Exchange } from '../contracts/exchange.js';
import {
  Order,
  RegisterInterceptor,
  type ExchangeInterceptor,
  type Target,
} from '../contracts/interceptor.js';
import type { StreamTransform } from '../contracts/stream.js';
import { ThinkTagTransform } from './think-tag.transform.js';

/** Opens a think-tag transform for answers of upstreams with `think_tags`. Keeps nothing between answers. */
@Injectable()
@RegisterInterceptor({ id: 'think-tags', order: Order.shape })
export class ThinkTagInterceptor implements ExchangeInterceptor {
  appliesTo({ operation, upstream }: Target): boolean {
    return operation === 'chat' && upstream.thinkTags !== 'off';
  }

  onResponse(_exchange: Exchange, { upstream }: Attempt): StreamTransform | null {
    return upstream.thinkTags === 'off' ? null : new ThinkTagTransform(upstream.thinkTags);
  }
}
