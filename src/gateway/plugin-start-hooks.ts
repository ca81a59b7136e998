import type { ModulesContainer } from '@nestjs/core';
import { type PluginProblem, PluginSetupError } from '../common/errors/plugin-setup-error.js';
import { INTERCEPTOR_METADATA, type InterceptorOptions } from '../contracts/interceptor.js';
import { type LoadedPlugin, pathOfModule } from './plugin-modules.js';
import { classOf, contentOf, type PluginModule } from './plugin-registrations.js';
import { failedIn, inTime } from './plugin-time-limit.js';

const HOOKS = ['onModuleInit', 'onApplicationBootstrap'] as const;

/**
 * Puts a limit of time on the hooks that the framework calls at the start, in what plugins bring, and a name on what they
 * throw. Called once, between the making of the service and its start.
 */
export async function guardStartHooks(
  container: ModulesContainer,
  plugins: readonly LoadedPlugin[],
  limitMs: number,
): Promise<void> {
  const paths = new Map<unknown, PluginProblem['path']>();
  for (const { modules, entry } of plugins) {
    const contents = await Promise.all(modules.map(contentOf));
    for (const module of contents.flatMap((content) => [...content.modules] as PluginModule[]))
      paths.set(classOf(module), entry === null ? [] : pathOfModule(entry));
  }
  const guarded = new Set<object>();
  for (const { metatype, providers, controllers, injectables } of container.values()) {
    const path = paths.get(metatype);
    if (path === undefined) continue;
    for (const wrapper of [...providers.values(), ...controllers.values(), ...injectables.values()]) {
      const instance: unknown = wrapper.instance;
      if (typeof instance !== 'object' || instance === null || guarded.has(instance)) continue;
      if (!wrapper.isDependencyTreeStatic()) continue;
      guarded.add(instance);
      guard(instance, { path, who: nameOf(instance), limitMs });
    }
  }
}

interface GuardOptions {
  readonly path: PluginProblem['path'];
  readonly who: string;
  readonly limitMs: number;
}

function guard(instance: object, { path, who, limitMs }: GuardOptions): void {
  for (const name of HOOKS) {
    const hook: unknown = (instance as Partial<Record<string, unknown>>)[name];
    if (typeof hook !== 'function') continue;
    const value = async () => {
      try {
        await inTime(Reflect.apply(hook, instance, []), limitMs);
      } catch (error) {
        throw new PluginSetupError([failedIn(path, who, name, error)]);
      }
    };
    // One that is frozen goes unguarded.
    Reflect.defineProperty(instance, name, { value, configurable: true, writable: true });
  }
}

function nameOf({ constructor: type }: object): string {
  if (typeof type !== 'function') return 'an object of a plugin';
  const options = Reflect.getMetadata(INTERCEPTOR_METADATA, type) as InterceptorOptions | undefined;
  return options === undefined ? `${type.name} of a plugin` : `plugin "${options.id}"`;
}
