import { Module } from '@nestjs/common';
import { ConsumerRegistry } from './consumer.registry.js';
import { IssuedIds } from './issued-ids.js';
import { IssuedIdsInterceptor } from './issued-ids.interceptor.js';

/** Who calls, and what each of them may use. */
@Module({
  providers: [
    ConsumerRegistry,
    { provide: IssuedIds, useFactory: () => new IssuedIds() },
    IssuedIdsInterceptor,
  ],
  exports: [ConsumerRegistry, IssuedIds],
})
export class ConsumersModule {}
