import { Module, type DynamicModule } from '@nestjs/common';
import { ConfigModule as NestConfigModule, ConfigService } from '@nestjs/config';
import { ConfigStore } from './config.store.js';
import type { Environment } from './environment.js';
import type { GatewayConfig } from './gateway-config.js';

export interface ConfigModuleOptions {
  readonly config: GatewayConfig;
  readonly environment: Environment;
}

/** What `ConfigService` holds. Ask it for these two as wholes: a dotted path cannot reach an id that holds a dot. */
export interface ConfigSnapshot {
  readonly gateway: GatewayConfig;
  readonly environment: Environment;
}

/** Hands the loaded configuration to the whole application as {@link ConfigStore}. It is loaded before Nest starts. */
@Module({})
export class ConfigModule {
  static forRoot({ config, environment }: ConfigModuleOptions): DynamicModule {
    const load = (): ConfigSnapshot => ({ gateway: config, environment });
    return {
      module: ConfigModule,
      global: true,
      imports: [
        // Only what was read and validated: no .env file, and no look into process.env behind the loader's back.
        NestConfigModule.forRoot({
          isGlobal: true,
          ignoreEnvFile: true,
          ignoreEnvVars: true,
          skipProcessEnv: true,
          load: [load],
        }),
      ],
      providers: [
        {
          provide: ConfigStore,
          // Not `set` and `changes$` on reload: `set` would write the configuration into process.env.
          useFactory: (service: ConfigService<ConfigSnapshot, true>) =>
            new ConfigStore(service.get('gateway', { infer: true })),
          inject: [ConfigService],
        },
      ],
      exports: [ConfigStore],
    };
  }
}
