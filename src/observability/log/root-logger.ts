import { createRequire } from 'node:module';
import { pino, type DestinationStream, type Logger } from 'pino';
import type Pretty from 'pino-pretty';

export type LogFormat = 'json' | 'pretty';

export interface RootLoggerOptions {
  readonly level: string;
  readonly format: LogFormat;
  readonly destination: DestinationStream;
  /** Whether the reader understands colours; only for `pretty`. */
  readonly colour?: boolean;
}

/** The one pino instance of the service. Every message begins with `[llm-proxy] `, the framework's too. */
export function createRootLogger(options: RootLoggerOptions): Logger {
  const settings = { level: options.level, msgPrefix: '[llm-proxy] ', base: null, redact: [] };
  if (options.format === 'json') return pino(settings, options.destination);
  const { destination } = options;
  const pretty = createRequire(import.meta.url)('pino-pretty') as typeof Pretty;
  const readable = pretty.prettyFactory({
    colorize: options.colour ?? false,
    singleLine: true,
    translateTime: 'SYS:HH:MM:ss.l',
    ignore: 'context',
  });
  return pino(settings, { write: (line: string) => destination.write(readable(line) ?? line) });
}
