import { pathToFileURL } from 'node:url';
import { isAbsolute, resolve } from 'node:path';
import { type DynamicModule, Module, type Type } from '@nestjs/common';
import type { ConfigPath } from '../common/text/config-path.js';
import type { PluginConfig } from '../config/gateway-config.js';
import { MARKS } from './plugin-marks.js';
import type { PluginProblem } from '../common/errors/plugin-setup-error.js';

/** A plugin as Nest takes it: a module class, a dynamic module, or a bare provider that is wrapped in a module. */
export type PluginModule = Type | DynamicModule;

export interface LoadedPlugin {
  readonly module: PluginModule;
  /** The entry of the file; null for a plugin given in code. */
  readonly entry: PluginConfig | null;
}

/** Plugins that can be used, and what is wrong with the others. */
export interface LoadedPlugins {
  readonly plugins: readonly LoadedPlugin[];
  readonly problems: readonly PluginProblem[];
}

/** Imports the plugins that a file names. `directory` is where the file lies. */
export async function loadPlugins(
  entries: readonly PluginConfig[],
  directory: string,
): Promise<LoadedPlugins> {
  const plugins: LoadedPlugin[] = [];
  const problems: PluginProblem[] = [];
  for (const entry of entries) {
    const found = await importPlugin(entry, directory);
    if ('message' in found) problems.push(found);
    else plugins.push({ module: found.module, entry });
  }
  return { plugins, problems };
}

/** Accepts what plugins are given as in code. */
export function givenPlugins(given: readonly unknown[]): LoadedPlugins {
  const plugins: LoadedPlugin[] = [];
  const problems: PluginProblem[] = [];
  for (const [i, plugin] of given.entries()) {
    const module = asPluginModule(plugin);
    if (module !== null) plugins.push({ module, entry: null });
    else problems.push({ path: [], message: `plugins[${i}] given to createApp ${REGISTERS_NOTHING}` });
  }
  return { plugins, problems };
}

/** Null for what registers nothing. */
export function asPluginModule(given: unknown): PluginModule | null {
  if (typeof given === 'object' && given !== null && 'module' in given) return given as DynamicModule;
  if (typeof given !== 'function') return null;
  const plugin = given as Type;
  if (isModule(plugin)) return plugin;
  return isMarked(plugin) ? wrapped(plugin) : null;
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
): Promise<{ readonly module: PluginModule } | PluginProblem> {
  const isPath = entry.module.startsWith('.') || isAbsolute(entry.module);
  const specifier = isPath ? pathToFileURL(resolve(directory, entry.module)).href : entry.module;
  const path = pathOfModule(entry);
  let exported: Record<string, unknown>;
  try {
    exported = (await import(specifier)) as Record<string, unknown>;
  } catch (error) {
    const code = (error as { code?: unknown } | null)?.code;
    const why =
      code === 'ERR_MODULE_NOT_FOUND'
        ? 'it, or something it imports, was not found'
        : `it failed while loading (${describe(error)})`;
    return { path, message: `cannot load "${entry.module}": ${why}` };
  }
  const candidates = [exported['default'], ...Object.values(exported)];
  const found =
    candidates.find((value) => typeof value === 'function' && isModule(value as Type)) ??
    candidates.find((value) => typeof value === 'object' && value !== null && 'module' in value) ??
    candidates.find((value) => typeof value === 'function' && isMarked(value as Type));
  const module = asPluginModule(found);
  return module === null ? { path, message: `"${entry.module}" ${REGISTERS_NOTHING}` } : { module };
}

/** Trap: anything can be thrown. */
function describe(error: unknown): string {
  if (!(error instanceof Error)) return 'it threw no error object';
  return `${error.name}: ${error.message.split('\n')[0]}`;
}

/** A provider that registers something by itself. */
function isMarked(type: Type): boolean {
  return Object.values(MARKS).some((key) => Reflect.hasMetadata(key, type));
}

function isModule(type: Type): boolean {
  return ['imports', 'providers', 'controllers', 'exports'].some((key) => Reflect.hasMetadata(key, type));
}

function wrapped(provider: Type): Type {
  class PluginProviderModule {}
  Module({ providers: [provider], exports: [provider] })(PluginProviderModule);
  return PluginProviderModule;
}
