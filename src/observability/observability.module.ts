import { type DynamicModule, Global, Module } from '@nestjs/common';
import { PrometheusModule } from '@willsoto/nestjs-prometheus';
import { LoggerModule } from 'nestjs-pino';
import type { Logger } from 'pino';
import { Registry } from 'prom-client';
import { GatewayLog } from './log/gateway-log.js';
import { ConsumerMetrics } from './metrics/consumer.metrics.js';
import { GatewayMetrics } from './metrics/gateway.metrics.js';
import { KeyMetrics } from './metrics/key.metrics.js';
import { QuotaMetrics } from './metrics/quota.metrics.js';
import { SlotMetrics } from './metrics/slot.metrics.js';

export interface ObservabilityOptions {
  readonly logger: Logger;
  readonly version: string;
  readonly logLinesDropped: () => number;
  /** Most consumers that metrics name. */
  readonly metricsConsumers: number;
  /** Serves GET /metrics; given from above, since controllers live in the HTTP layer. */
  readonly metricsController: new (...dependencies: never[]) => object;
}

@Global()
@Module({})
export class ObservabilityModule {
  static forRoot(options: ObservabilityOptions): DynamicModule {
    // Trap: the library's global registry refuses a second application in one process.
    const registry = new Registry();
    const metrics = new GatewayMetrics(
      registry,
      { version: options.version, node: process.version },
      options.logLinesDropped,
    );
    const log = new GatewayLog(options.logger);
    return {
      module: ObservabilityModule,
      imports: [
        PrometheusModule.register({
          controller: options.metricsController,
          defaultMetrics: { enabled: true, config: { register: registry } },
        }),
        // No request middleware: requests are logged by the gateway, once, with what happened to them.
        LoggerModule.forRoot({ pinoHttp: { logger: options.logger }, forRoutes: [] }),
      ],
      providers: [
        { provide: GatewayMetrics, useValue: metrics },
        { provide: KeyMetrics, useValue: new KeyMetrics(registry) },
        { provide: ConsumerMetrics, useValue: new ConsumerMetrics(registry, options.metricsConsumers) },
        { provide: QuotaMetrics, useValue: new QuotaMetrics(registry, options.metricsConsumers) },
        { provide: SlotMetrics, useValue: new SlotMetrics(registry) },
        { provide: GatewayLog, useValue: log },
      ],
      exports: [GatewayMetrics, ConsumerMetrics, KeyMetrics, QuotaMetrics, SlotMetrics, GatewayLog],
    };
  }
}
