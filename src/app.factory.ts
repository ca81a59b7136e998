import 'reflect-metadata';
import { dirname } from 'node:path';
import { ModulesContainer, NestFactory } from '@nestjs/core';
import { RuntimeException } from '@nestjs/core/errors/exceptions/runtime.exception.js';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import { Logger as NestPinoLogger } from 'nestjs-pino';
import type { Logger } from 'pino';
import { AppModule } from './app.module.js';
import type { ConfigPath } from './common/text/config-path.js';
import { type Environment, readEnvironment } from './config/environment.js';
import type { GatewayConfig } from './config/gateway-config.js';
import { GatewayModule } from './gateway/gateway.module.js';
import { PluginCheck } from './gateway/plugin-check.js';
import {
  givenPlugins,
  type LoadedPlugin,
  loadPlugins,
  pathOfModule,
  throwerOf,
} from './gateway/plugin-modules.js';
import { guardStartHooks } from './gateway/plugin-start-hooks.js';
import { describe, inTime, PLUGIN_START_LIMIT_MS, PluginLateError } from './gateway/plugin-time-limit.js';
import { PluginSetupError } from './common/errors/plugin-setup-error.js';
import { EdgeService } from './http/edge.service.js';
import { createHttpServer } from './http/http-server.js';
import { createRootLogger } from './observability/log/root-logger.js';
import { StartLog } from './observability/log/start-log.js';

export { loadConfig } from './config/loader/load-config.js';
export { PluginSetupError } from './common/errors/plugin-setup-error.js';

export interface CreateAppOptions {
  /** A loaded configuration: {@link loadConfig}. */
  readonly config: GatewayConfig;
  /** Plugins given in code, beside those that the file names: Nest modules, dynamic modules, or bare providers. */
  readonly plugins?: readonly unknown[];
  /** Default: the environment of the process. */
  readonly environment?: Environment;
  /** Default: JSON lines that go nowhere, so that a test is quiet. */
  readonly logger?: Logger;
  readonly logLinesDropped?: () => number;
  /** How long each step of a plugin's start may take. Default: {@link PLUGIN_START_LIMIT_MS}. */
  readonly pluginStartLimitMs?: number;
}

/**
 * Builds the whole service without listening; main and the end-to-end tests share it. Throws {@link PluginSetupError}
 * for plugins that cannot be wired.
 */
export async function createApp(options: CreateAppOptions): Promise<NestFastifyApplication> {
  const { config } = options;
  const pluginStartLimitMs = options.pluginStartLimitMs ?? PLUGIN_START_LIMIT_MS;
  const plugins = await setUpPlugins(config, options.plugins, pluginStartLimitMs);
  const logger =
    options.logger ?? createRootLogger({ level: 'silent', format: 'json', destination: { write: () => {} } });
  let edge: EdgeService | null = null;
  const fastify = createHttpServer({
    bodyLimitBytes: config.server.bodyLimitBytes,
    edge: () => {
      if (edge === null) throw new Error('a request came before the service was wired');
      return edge;
    },
  });
  const module = AppModule.forRoot({
    config,
    environment: options.environment ?? readEnvironment(),
    logger,
    logLinesDropped: options.logLinesDropped ?? (() => 0),
    plugins,
    pluginStartLimitMs,
  });
  const making = NestFactory.create<NestFastifyApplication>(module, new FastifyAdapter(fastify), {
    bodyParser: false,
    logger: new StartLog(logger),
    abortOnError: false,
  });
  const app = await (plugins.length === 0 ? making : made(making, plugins, pluginStartLimitMs));
  await guardStartHooks(app.get(ModulesContainer), plugins, pluginStartLimitMs);
  app.useLogger(app.get(NestPinoLogger));
  edge = app.get(EdgeService);
  return app;
}

/** The service without plugins is always wired, so what cannot be, or takes too long, is theirs. */
async function made<T>(making: Promise<T>, plugins: readonly LoadedPlugin[], limitMs: number): Promise<T> {
  try {
    return await inTime(making, limitMs);
  } catch (error) {
    let path: ConfigPath = ['plugins'];
    let message: string;
    if (error instanceof RuntimeException) message = error.message.trim().split('\n')[0] ?? '';
    else if (error instanceof PluginLateError) message = `an asynchronous provider of one ${error.message}`;
    else if (error instanceof Error) {
      const entry = throwerOf(error, plugins)?.entry;
      if (entry === undefined || entry === null) throw error;
      path = pathOfModule(entry);
      message = `what makes a provider of "${entry.module}" failed (${describe(error)})`;
    } else message = 'what makes a provider of one threw no error object';
    throw new PluginSetupError([{ path, message }]);
  }
}

/**
 * Imports the plugins of a configuration and checks them, without running any. Throws {@link PluginSetupError} with all
 * that is wrong.
 */
export async function setUpPlugins(
  config: GatewayConfig,
  inCode: readonly unknown[] = [],
  limitMs: number = PLUGIN_START_LIMIT_MS,
): Promise<readonly LoadedPlugin[]> {
  const given = givenPlugins(inCode);
  const named = await loadPlugins(
    config.plugins,
    config.path === null ? process.cwd() : dirname(config.path),
    limitMs,
  );
  const plugins = [...given.plugins, ...named.plugins];
  const unusable = [...given.problems, ...named.problems];
  const check = new PluginCheck(limitMs);
  await check.start(GatewayModule);
  for (const plugin of plugins) await check.plugin(plugin);
  // What could not be loaded may have brought the names that the file uses.
  if (unusable.length === 0) check.names(config);
  const problems = [...unusable, ...check.problems];
  if (problems.length > 0) throw new PluginSetupError(problems);
  return plugins;
}

/** Listens; rejects where the address cannot be had. */
export async function listenOn(app: NestFastifyApplication, host: string, port: number): Promise<void> {
  await app.init();
  // Trap: Nest tells an error of the listener in a line of its own; who called this tells it too, and better.
  app.useLogger(false);
  await app.listen({ host, port });
  app.useLogger(app.get(NestPinoLogger));
}
