import { Global, Module } from '@nestjs/common';
import { wallClock } from '../common/time/clock.js';
import { GATE_SOURCE } from '../contracts/gate.js';
import { WALL_CLOCK } from '../contracts/ports.js';
import { QuotaKeeperService } from './quota-keeper.service.js';
import { QuotaRegistry } from './quota.registry.js';
import { SharedQuotas } from './shared-quotas.js';
import { QuotaStore } from './quota.store.js';

/** Global: what gives requests their candidates asks for `GATE_SOURCE`, and does not know who answers. */
@Global()
@Module({
  providers: [
    { provide: WALL_CLOCK, useValue: wallClock },
    QuotaKeeperService,
    QuotaRegistry,
    QuotaStore,
    SharedQuotas,
    { provide: GATE_SOURCE, useExisting: QuotaRegistry },
  ],
  exports: [QuotaRegistry, GATE_SOURCE, WALL_CLOCK],
})
export class QuotasModule {}
