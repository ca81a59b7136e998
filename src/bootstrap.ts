import { flushCompileCache } from 'node:module';
import { isIP } from 'node:net';
import { isAbsolute, resolve } from 'node:path';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { createApp, listenOn, setUpPlugins } from './app.factory.js';
import { parseCommandLine, USAGE } from './command-line.js';
import { countBuffersWithTheHeap } from './config/buffer-accounting.js';
import { checkReport } from './config/check-report.js';
import { type Environment, readEnvironment } from './config/environment.js';
import type { GatewayConfig, ProviderConfig } from './config/gateway-config.js';
import { formatPath } from './common/text/config-path.js';
import { type ConfigProblem, formatProblem } from './config/loader/config-problem.js';
import { loadConfig, type LoadResult } from './config/loader/load-config.js';
import { startupLines } from './config/startup-lines.js';
import { YoungGeneration } from './config/young-generation.js';
import { newKeyLines } from './consumers/key-digest.js';
import { PluginSetupError } from './common/errors/plugin-setup-error.js';
import { GatewayLog } from './observability/log/gateway-log.js';
import { LogDestination } from './observability/log/log-destination.js';
import { createRootLogger } from './observability/log/root-logger.js';
import { StateFileError } from './state/state-file.js';
import { VERSION } from './package-info.js';
import { shutDown } from './shutdown.js';
import { StopSignals } from './stop-signals.js';

const STDOUT = 1;
const LOG_FLUSH_MS = 500;

/** The command line: start, check, help, version. Ends the process where there is nothing to serve. */
export async function run(args: readonly string[]): Promise<void> {
  const environment = readEnvironment();
  const command = parseCommandLine(args, environment.configPath);
  switch (command.kind) {
    case 'help':
      process.stdout.write(USAGE);
      return;
    case 'version':
      process.stdout.write(`${VERSION}\n`);
      return;
    case 'wrong':
      process.stderr.write(`[llm-proxy] ${command.message}\n\n${USAGE}`);
      process.exitCode = 2;
      return;
    case 'new-key':
      process.stdout.write(`${newKeyLines(command.id).join('\n')}\n`);
      return;
    case 'check':
      await check(load(command.path, environment));
      return;
    case 'start': {
      const youngGeneration = new YoungGeneration([
        ...process.execArgv,
        environment.variables['NODE_OPTIONS'] ?? '',
      ]);
      youngGeneration.limit();
      await start(load(environment.configPath, environment), environment, youngGeneration);
    }
  }
}

function load(path: string, environment: Environment): LoadResult {
  return loadConfig({ path: isAbsolute(path) ? path : resolve(path) }, environment.variables);
}

async function check(result: LoadResult): Promise<void> {
  const checked = result.ok ? await withPlugins(result) : result;
  if (checked.ok) process.stdout.write(`${checkReport(checked.config, checked.warnings)}\n`);
  else refuse(checked);
  // Trap: what a plugin's module opened while it was imported would keep the process alive.
  process.stdout.write('', () => process.exit());
}

/** As a start would see it, as far as that can be told without running any plugin. */
async function withPlugins(loaded: Extract<LoadResult, { ok: true }>): Promise<LoadResult> {
  try {
    await setUpPlugins(loaded.config);
    return loaded;
  } catch (error) {
    if (!(error instanceof PluginSetupError)) throw error;
    return { ok: false, problems: placed(error, loaded), warnings: loaded.warnings };
  }
}

function placed(
  error: PluginSetupError,
  { lineOf, secrets }: Extract<LoadResult, { ok: true }>,
): ConfigProblem[] {
  const problems = error.problems.map(({ path, message }) => ({
    path: secrets.mask(formatPath(path)),
    line: path.length === 0 ? null : lineOf(path),
    message: secrets.mask(message),
  }));
  return problems.toSorted((a, b) => (a.line ?? 0) - (b.line ?? 0));
}

function refuse(result: Extract<LoadResult, { ok: false }>): void {
  for (const problem of result.problems) process.stderr.write(`[llm-proxy] ${formatProblem(problem)}\n`);
  for (const warning of result.warnings)
    process.stderr.write(`[llm-proxy] warning: ${formatProblem(warning)}\n`);
  process.exitCode = 1;
}

async function start(
  result: LoadResult,
  environment: Environment,
  youngGeneration: YoungGeneration,
): Promise<void> {
  if (!result.ok) {
    refuse(result);
    return;
  }
  const { config, warnings } = result;
  const destination = new LogDestination(STDOUT);
  const logger = createRootLogger({
    level: environment.logLevel,
    format: environment.logFormat,
    destination,
    colour: process.stdout.isTTY === true,
  });
  const log = new GatewayLog(logger);
  // Trap: an error that nobody caught belongs to one request; it must not end the others.
  process.on('uncaughtException', (error) => log.unexpected('', 'the process', error));
  process.on('unhandledRejection', (error) => log.unexpected('', 'the process', error));
  try {
    const logLinesDropped = () => destination.dropped;
    const app = await createApp({ config, environment, logger, logLinesDropped });
    for (const warning of environment.warnings) log.warn(`environment: ${warning}`);
    for (const warning of warnings) log.warn(`config: ${formatProblem(warning)}`);
    for (const line of startupLines(config)) log.info(line);
    await listen(app, config, log);
    // Trap: compiled code is only good for the flags under which it was made, so what the next start reads is written first.
    youngGeneration.asBegun(flushCompileCache);
    countBuffersWithTheHeap();
    endOnSignal(
      app,
      config,
      new StopSignals(environment.npmInTerminal, () => performance.now()),
      log,
      destination,
    );
  } catch (error) {
    await destination.close(LOG_FLUSH_MS);
    if (error instanceof PluginSetupError) {
      refuse({ ok: false, problems: placed(error, result), warnings });
    } else {
      process.stderr.write(startFailure(error, config));
    }
    process.exit(1);
  }
}

async function listen(app: NestFastifyApplication, config: GatewayConfig, log: GatewayLog): Promise<void> {
  const { host, port } = config.server;
  await listenOn(app, host, port);
  const address = app.getHttpServer().address();
  const bound = typeof address === 'object' && address !== null ? address.port : port;
  log.info(`server: bind host=${host} port=${bound}`, { host, port: bound });
  const keyed = ({ key, keys }: ProviderConfig): boolean =>
    key !== '' || (keys ?? []).some(({ value }) => value !== '');
  if (config.consumers === null && config.providers.some(keyed) && !isLoopback(host)) {
    log.warn(
      `server: provider keys are configured and ${host} is reachable from other machines without any authentication; anyone who reaches port ${bound} can spend them`,
    );
  }
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));
}

function endOnSignal(
  app: NestFastifyApplication,
  config: GatewayConfig,
  stop: StopSignals,
  log: GatewayLog,
  destination: LogDestination,
): void {
  const end = (signal: string) => {
    const wish = stop.heard(signal);
    if (wish === 'ignore') return;
    if (wish === 'end') {
      log.warn(`server: ${signal} again, ending at once`);
      destination.flushSync();
      process.exit(1);
    }
    log.info(`server: ${signal}, draining`);
    void shutDown(app, config.server.shutdownGraceMs)
      .then(() => log.info('server: ended'))
      .catch((error: unknown) => log.unexpected('', 'the shutdown', error))
      .then(() => destination.close(LOG_FLUSH_MS))
      .finally(() => process.exit(0));
  };
  process.on('SIGTERM', end);
  process.on('SIGINT', end);
  process.on('SIGHUP', end);
}

/** One clear line; a stack trace would help nobody here. */
function startFailure(error: unknown, config: GatewayConfig): string {
  if (error instanceof StateFileError)
    return `[llm-proxy] ${error.message}
`;
  // Trap: what a plugin throws may be no object.
  const code = (error as NodeJS.ErrnoException | null | undefined)?.code;
  const { host, port } = config.server;
  if (code === 'EADDRINUSE')
    return `[llm-proxy] cannot listen on ${host}:${port}: the port is in use (EADDRINUSE)\n`;
  if (code === 'EACCES') return `[llm-proxy] cannot listen on ${host}:${port}: not permitted (EACCES)\n`;
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND') {
    return `[llm-proxy] cannot listen on ${host}:${port}: no such address on this machine (${code})\n`;
  }
  const why = error instanceof Error ? `${error.name}: ${error.message.split('\n')[0]}` : 'unknown error';
  return `[llm-proxy] cannot start: ${why}\n`;
}
