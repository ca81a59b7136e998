import { pathToFileURL } from 'node:url';
import { isAbsolute, resolve } from 'node:path';
import type { ConfigPath } from '../common/text/config-path.js';
import type { PluginConfig } from '../config/gateway-config.js';
import { asPluginModule, partsOf } from './plugin-parts.js';
import type { PluginModule } from './plugin-registrations.js';
import { describe, inTime, PluginLateError } from './plugin-time-limit.js';
import type { PluginProblem } from '../common/errors/plugin-setup-error.js';

export interface LoadedPlugin {
  /** At least one. */
  readonly modules: readonly PluginModule[];
  /** The entry of the file; null for a plugin given in code. */
  readonly entry: PluginConfig | null;
  /** What stands in the stack of an error that its module threw; null for a plugin given in code. */
  readonly place: string | null;
}

/** Plugins that can be used, and what is wrong with the others. */
export interface LoadedPlugins {
  readonly plugins: readonly LoadedPlugin[];
  readonly problems: readonly PluginProblem[];
}

/** Imports the plugins that a file names. `directory` is where the file lies, `limitMs` the time that one may take. */
export async function loadPlugins(
  entries: readonly PluginConfig[],
  directory: string,
  limitMs: number,
): Promise<LoadedPlugins> {
  const plugins: LoadedPlugin[] = [];
  const problems: PluginProblem[] = [];
  for (const entry of entries) {
    const found = await importPlugin(entry, directory, limitMs);
    if ('message' in found) problems.push(found);
    else plugins.push({ modules: found.modules, entry, place: placeOf(entry, directory) });
  }
  return { plugins, problems };
}

/** Accepts what plugins are given as in code. */
export function givenPlugins(given: readonly unknown[]): LoadedPlugins {
  const plugins: LoadedPlugin[] = [];
  const problems: PluginProblem[] = [];
  for (const [i, plugin] of given.entries()) {
    const module = asPluginModule(plugin);
    if (module !== null) plugins.push({ modules: [module], entry: null, place: null });
    else problems.push({ path: [], message: `plugins[${i}] given to createApp ${REGISTERS_NOTHING}` });
  }
  return { plugins, problems };
}

/** The plugin whose code threw this first of all, as far as the stack tells. */
export function throwerOf(error: Error, plugins: readonly LoadedPlugin[]): LoadedPlugin | undefined {
  const frames = String(error.stack)
    .split('\n')
    .filter((line) => /^\s+at /.test(line));
  for (const frame of frames) {
    const thrower = plugins.find(({ place }) => place !== null && frame.includes(place));
    if (thrower !== undefined) return thrower;
  }
  return undefined;
}

function placeOf({ module }: PluginConfig, directory: string): string {
  return isFile(module) ? pathToFileURL(resolve(directory, module)).pathname : `/node_modules/${module}/`;
}

function isFile(module: string): boolean {
  return module.startsWith('.') || isAbsolute(module);
}

/** Where the module of an entry stands in the file. */
export function pathOfModule(entry: PluginConfig): ConfigPath {
  return [...entry.path, 'module'];
}

export const REGISTERS_NOTHING =
  'registers nothing: export a Nest module, or a class marked with @RegisterInterceptor, @RegisterErrorClassifier or @RegisterRoutingPolicy';

async function importPlugin(
  entry: PluginConfig,
  directory: string,
  limitMs: number,
): Promise<{ readonly modules: readonly PluginModule[] } | PluginProblem> {
  const specifier = isFile(entry.module)
    ? pathToFileURL(resolve(directory, entry.module)).href
    : entry.module;
  const path = pathOfModule(entry);
  let exported: Record<string, unknown>;
  try {
    exported = (await inTime(import(specifier), limitMs)) as Record<string, unknown>;
  } catch (error) {
    const code = (error as { code?: unknown } | null)?.code;
    const why =
      error instanceof PluginLateError
        ? `it ${error.message}; an await at its top level waits for what does not come`
        : code === 'ERR_MODULE_NOT_FOUND'
          ? 'it, or something it imports, was not found'
          : `it failed while loading (${describe(error)})`;
    return { path, message: `cannot load "${entry.module}": ${why}` };
  }
  try {
    const modules = await inTime(partsOf(Object.values(exported)), limitMs);
    return modules.length === 0 ? { path, message: `"${entry.module}" ${REGISTERS_NOTHING}` } : { modules };
  } catch (error) {
    // What a plugin's own classes throw while they are read.
    return { path, message: `the plugin cannot be read (${describe(error)})` };
  }
}
