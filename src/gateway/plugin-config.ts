import { createRequire } from 'node:module';
import type * as ClassTransformer from 'class-transformer';
import type { ValidationError } from 'class-validator';
import { type ConfigPath, formatPath } from '../common/text/config-path.js';
import type { InterceptorOptions } from '../contracts/interceptor.js';
import { validateSync } from '../config/schema/class-validator.js';
import type { PluginProblem } from '../common/errors/plugin-setup-error.js';

export interface PluginSettings {
  /** An instance of the plugin's own class, or the plain object where it has none. */
  readonly settings: object;
  readonly problems: readonly PluginProblem[];
}

/** Reads the `config` of a plugin by the plugin's own class. `entryPath` is that of its entry; null for one given in code. */
export function readSettings(
  options: InterceptorOptions,
  config: object,
  entryPath: ConfigPath | null,
): PluginSettings {
  if (options.config === undefined) return { settings: config, problems: [] };
  // Not on the way of a start without such plugins.
  const { plainToInstance } = createRequire(import.meta.url)('class-transformer') as typeof ClassTransformer;
  const settings = plainToInstance(options.config, config);
  const errors = validateSync(settings, { whitelist: true, forbidNonWhitelisted: true });
  const found = errors.flatMap((error) => flat(error, ['config'], false));
  const problems = found.map(({ path, message }): PluginProblem => {
    if (entryPath !== null) return { path: [...entryPath, ...path], message };
    return { path: [], message: `plugin "${options.id}".${formatPath(path)}: ${message}` };
  });
  return { settings, problems };
}

function flat(error: ValidationError, parent: ConfigPath, inList: boolean): PluginProblem[] {
  const path = [...parent, inList ? Number(error.property) : error.property];
  const own = Object.values(error.constraints ?? {}).map((message) => ({ path, message }));
  return [
    ...own,
    ...(error.children ?? []).flatMap((child) => flat(child, path, Array.isArray(error.value))),
  ];
}
