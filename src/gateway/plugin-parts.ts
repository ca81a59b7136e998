import { type DynamicModule, Module, type Type } from '@nestjs/common';
import { MARKS } from './plugin-marks.js';
import { contentOf, type PluginModule } from './plugin-registrations.js';

/**
 * What of the exports of a file is a plugin: each Nest module that no other one imports, and each marked class that none of
 * them provides. Together these are one module more.
 */
export async function partsOf(exported: readonly unknown[]): Promise<readonly PluginModule[]> {
  const values = [...new Set(exported)];
  const dynamic = values.filter(isDynamicModule);
  const configured = new Set<unknown>(dynamic.map(({ module }) => module));
  const found = [...values.filter(isModule).filter((type) => !configured.has(type)), ...dynamic];
  const left = new Map(
    await Promise.all(found.map(async (module) => [module, await contentOf(module)] as const)),
  );
  for (const module of found)
    if ([...left].some(([other, { modules }]) => other !== module && modules.has(module)))
      left.delete(module);
  const contents = [...left.values()];
  const bare = values
    .filter(isMarked)
    .filter((type) => !isModule(type) && !contents.some(({ provided }) => provided.has(type)));
  return [...left.keys(), ...(bare.length === 0 ? [] : [wrapped(bare)])];
}

/** Null for what registers nothing. */
export function asPluginModule(given: unknown): PluginModule | null {
  if (isDynamicModule(given) || isModule(given)) return given;
  return isMarked(given) ? wrapped([given]) : null;
}

function isDynamicModule(given: unknown): given is DynamicModule {
  return (
    typeof given === 'object' &&
    given !== null &&
    typeof (given as { module?: unknown }).module === 'function'
  );
}

function isModule(given: unknown): given is Type {
  return has(given, ['imports', 'providers', 'controllers', 'exports']);
}

/** A provider that registers something by itself. */
function isMarked(given: unknown): given is Type {
  return has(given, Object.values(MARKS));
}

function has(given: unknown, marks: readonly string[]): boolean {
  return typeof given === 'function' && marks.some((key) => Reflect.hasMetadata(key, given));
}

function wrapped(providers: Type[]): Type {
  class PluginProviderModule {}
  Module({ providers, exports: providers })(PluginProviderModule);
  return PluginProviderModule;
}
