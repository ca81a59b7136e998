import { type DynamicModule, Module } from '@nestjs/common';
import type { Logger } from 'pino';
import { ConfigModule } from './config/config.module.js';
import type { Environment } from './config/environment.js';
import type { GatewayConfig } from './config/gateway-config.js';
import { GatewayModule } from './gateway/gateway.module.js';
import type { LoadedPlugin } from './gateway/plugin-modules.js';
import { HttpModule } from './http/http.module.js';
import { MetricsController } from './http/metrics.controller.js';
import { ObservabilityModule } from './observability/observability.module.js';
import { VERSION } from './package-info.js';
import { ProberModule } from './prober/prober.module.js';

export interface AppModuleOptions {
  readonly config: GatewayConfig;
  readonly environment: Environment;
  readonly logger: Logger;
  readonly logLinesDropped: () => number;
  readonly plugins: readonly LoadedPlugin[];
  readonly pluginStartLimitMs: number;
}

/** The one module list of the process. */
@Module({})
export class AppModule {
  static forRoot(options: AppModuleOptions): DynamicModule {
    return {
      module: AppModule,
      imports: [
        ConfigModule.forRoot(options),
        ObservabilityModule.forRoot({
          ...options,
          version: VERSION,
          metricsController: MetricsController,
          metricsConsumers: options.config.server.metricsConsumers,
        }),
        GatewayModule.forRoot(options.plugins, options.pluginStartLimitMs),
        ProberModule,
        HttpModule,
        ...options.plugins.flatMap(({ modules }) => modules),
      ],
    };
  }
}
