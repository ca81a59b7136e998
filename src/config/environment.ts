import { shownValue } from '../common/text/shown-value.js';

export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];
export type LogFormat = 'json' | 'pretty';

/** What the process takes from its environment, read once at start. */
export interface Environment {
  /** As given: absolute, or relative to the working directory. */
  readonly configPath: string;
  readonly logLevel: LogLevel;
  readonly logFormat: LogFormat;
  /** What `${VAR}` in the file is taken from. Never log it. */
  readonly variables: Readonly<Record<string, string | undefined>>;
  /** Started by `npm start` or the like, in a terminal: there one Ctrl-C can arrive twice. */
  readonly npmInTerminal: boolean;
  /** Values that were not understood, one line each, for the log. */
  readonly warnings: readonly string[];
}

/** The only place that reads process.env. An empty variable counts as unset. */
export function readEnvironment(
  variables: Readonly<Record<string, string | undefined>> = process.env,
  stdoutIsTerminal: boolean = process.stdout.isTTY === true,
  stdinIsTerminal: boolean = process.stdin.isTTY === true,
): Environment {
  const warnings: string[] = [];
  const choose = <T extends string>(name: string, allowed: readonly T[], byDefault: T): T => {
    const given = variables[name]?.trim() ?? '';
    const chosen = allowed.find((value) => value === given.toLowerCase());
    if (chosen === undefined && given !== '') {
      warnings.push(
        `${name}="${shownValue(given)}" is unknown, ${byDefault} is used; write one of ${allowed.join(', ')}`,
      );
    }
    return chosen ?? byDefault;
  };
  return {
    configPath: variables['CONFIG_PATH'] || 'config.yaml',
    logLevel: choose('LOG_LEVEL', LOG_LEVELS, 'info'),
    logFormat: choose('LOG_FORMAT', ['json', 'pretty'], stdoutIsTerminal ? 'pretty' : 'json'),
    variables: { ...variables },
    npmInTerminal: stdinIsTerminal && (variables['npm_lifecycle_event'] ?? '') !== '',
    warnings,
  };
}
