import { type DynamicModule, Module } from '@nestjs/common';
import { DiscoveryModule } from '@nestjs/core';
import type { Clock } from '../common/time/clock.js';
import { ConsumerRegistry } from '../consumers/consumer.registry.js';
import { ConsumersModule } from '../consumers/consumers.module.js';
import { CLOCK, PROBE_SENDER } from '../contracts/ports.js';
import { AffinityModule } from '../affinity/affinity.module.js';
import { PatchingModule } from '../patching/patching.module.js';
import { QuotasModule } from '../quotas/quotas.module.js';
import { ReasoningModule } from '../reasoning/reasoning.module.js';
import { RoutingModule } from '../routing/routing.module.js';
import { SessionModule } from '../session/session.module.js';
import { SHARED_STATE, type SharedState } from '../state/shared-state.js';
import { UpstreamsModule } from '../upstreams/upstreams.module.js';
import { AffinityDesk } from './affinity-desk.js';
import { AnswerStages } from './answer-stages.js';
import { AttemptRunner } from './attempt.runner.js';
import { AttemptShaper } from './attempt.shaper.js';
import { ClaimDesk } from './claim-desk.js';
import { ErrorClassifiers } from './error-classifiers.js';
import { GatewayService } from './gateway.service.js';
import { OutcomeBook } from './outcome-book.js';
import { PipelineCompiler } from './pipeline.compiler.js';
import { LOADED_PLUGINS, PLUGIN_START_LIMIT, PluginConfigurator } from './plugin.configurator.js';
import type { LoadedPlugin } from './plugin-modules.js';
import { PluginExplorer } from './plugin.explorer.js';
import { PluginGuard } from './plugin.guard.js';
import { QuotaDesk } from './quota-desk.js';
import { GatewayProbeSender } from './probe.sender.js';
import { ConsumerDesk } from './consumer-desk.js';
import { SHARED_CONSUMERS, SharedConsumers } from './shared-consumers.js';
import { RequestShaper } from './request.shaper.js';
import { Resolution } from './resolution.js';
import { RunningExchanges } from './running-exchanges.js';
import { UpstreamAttempts } from './upstream-attempts.js';

/** The engine, and the built-in interceptors that it finds like any plugin's. */
@Module({
  imports: [
    AffinityModule,
    DiscoveryModule,
    UpstreamsModule,
    RoutingModule,
    PatchingModule,
    QuotasModule,
    ConsumersModule,
    ReasoningModule,
    SessionModule,
  ],
  providers: [
    AffinityDesk,
    AnswerStages,
    AttemptRunner,
    AttemptShaper,
    RequestShaper,
    ClaimDesk,
    ErrorClassifiers,
    GatewayService,
    OutcomeBook,
    PipelineCompiler,
    PluginConfigurator,
    PluginExplorer,
    PluginGuard,
    QuotaDesk,
    ConsumerDesk,
    {
      provide: SHARED_CONSUMERS,
      inject: [SHARED_STATE, CLOCK, ConsumerRegistry],
      useFactory: (state: SharedState | null, clock: Clock, registry: ConsumerRegistry) =>
        state === null ? null : new SharedConsumers(state, clock, registry.limited),
    },
    Resolution,
    RunningExchanges,
    UpstreamAttempts,
    { provide: PROBE_SENDER, useClass: GatewayProbeSender },
  ],
  exports: [GatewayService, Resolution, RunningExchanges, PluginExplorer, PROBE_SENDER],
})
export class GatewayModule {
  /** With the plugins that were given or named; their modules are imported by the application. `startLimitMs`: for `configure`. */
  static forRoot(plugins: readonly LoadedPlugin[], startLimitMs: number): DynamicModule {
    return {
      module: GatewayModule,
      global: true,
      providers: [
        { provide: LOADED_PLUGINS, useValue: plugins },
        { provide: PLUGIN_START_LIMIT, useValue: startLimitMs },
      ],
    };
  }
}
