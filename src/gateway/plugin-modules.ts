import { pathToFileURL } from 'node:url';
import { isAbsolute, resolve } from 'node:path';
import { type DynamicModule, Module, type Type } from '@nestjs/common';
import type { PluginConfig } from '../config/gateway-config.js';
import { ERROR_CLASSIFIER_METADATA } from '../contracts/error-class.js';
import { INTERCEPTOR_METADATA } from '../contracts/interceptor.js';
import { PluginSetupError } from './plugin-setup-error.js';

/** A plugin as Nest takes it: a module class, a dynamic module, or a bare provider that is wrapped in a module. */
export type PluginModule = Type | DynamicModule;

export interface LoadedPlugin {
  readonly module: PluginModule;
  /** The entry of the file; null for a plugin given in code. */
  readonly entry: PluginConfig | null;
}

/** Imports the plugins that a file names. `directory` is where the file lies. */
export async function loadPlugins(
  entries: readonly PluginConfig[],
  directory: string,
): Promise<LoadedPlugin[]> {
  const loaded: LoadedPlugin[] = [];
  for (const entry of entries) loaded.push({ module: await importPlugin(entry, directory), entry });
  return loaded;
}

/** Accepts what plugins are given as in code. */
export function asPluginModule(given: unknown, name: string): PluginModule {
  if (typeof given === 'object' && given !== null && 'module' in given) return given as DynamicModule;
  if (typeof given !== 'function') throw nothingToRegister(name);
  const plugin = given as Type;
  if (isModule(plugin)) return plugin;
  if (isMarked(plugin)) return wrapped(plugin);
  throw nothingToRegister(name);
}

async function importPlugin(entry: PluginConfig, directory: string): Promise<PluginModule> {
  const isPath = entry.module.startsWith('.') || isAbsolute(entry.module);
  const specifier = isPath ? pathToFileURL(resolve(directory, entry.module)).href : entry.module;
  let exported: Record<string, unknown>;
  try {
    exported = (await import(specifier)) as Record<string, unknown>;
  } catch (error) {
    const code = (error as { code?: unknown }).code;
    const why =
      code === 'ERR_MODULE_NOT_FOUND'
        ? 'it, or something it imports, was not found'
        : `it failed while loading (${String((error as Error).name)}: ${String((error as Error).message).split('\n')[0]})`;
    throw new PluginSetupError(`${entry.path}.module: cannot load "${entry.module}": ${why}`);
  }
  const candidates = [exported['default'], ...Object.values(exported)];
  const found =
    candidates.find((value) => typeof value === 'function' && isModule(value as Type)) ??
    candidates.find((value) => typeof value === 'object' && value !== null && 'module' in value) ??
    candidates.find((value) => typeof value === 'function' && isMarked(value as Type));
  return asPluginModule(found, `${entry.path}.module "${entry.module}"`);
}

function isModule(type: Type): boolean {
  return ['imports', 'providers', 'controllers', 'exports'].some((key) => Reflect.hasMetadata(key, type));
}

/** A provider that registers something by itself. */
function isMarked(type: Type): boolean {
  return [INTERCEPTOR_METADATA, ERROR_CLASSIFIER_METADATA].some((key) => Reflect.hasMetadata(key, type));
}

function wrapped(provider: Type): Type {
  class PluginProviderModule {}
  Module({ providers: [provider], exports: [provider] })(PluginProviderModule);
  return PluginProviderModule;
}

function nothingToRegister(name: string): PluginSetupError {
  return new PluginSetupError(
    `${name} registers nothing: export a Nest module, or a class marked with @RegisterInterceptor or @RegisterErrorClassifier`,
  );
}
