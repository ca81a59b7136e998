import { Inject, Injectable, type OnModuleInit } from '@nestjs/common';
import { plainToInstance } from 'class-transformer';
import { validateSync, type ValidationError } from 'class-validator';
import { type RegisteredInterceptor, PluginExplorer } from './plugin.explorer.js';
import { ErrorClassifiers } from './error-classifiers.js';
import type { LoadedPlugin, PluginModule } from './plugin-modules.js';
import { PluginSetupError } from './plugin-setup-error.js';

/** Injection token of the plugins that were given or named. */
export const LOADED_PLUGINS = Symbol.for('llm-proxy:loaded-plugins');

/** Hands each plugin its `config` of the file, validated by the plugin's own class, before the service listens. */
@Injectable()
export class PluginConfigurator implements OnModuleInit {
  constructor(
    private readonly explorer: PluginExplorer,
    private readonly classifiers: ErrorClassifiers,
    @Inject(LOADED_PLUGINS) private readonly plugins: readonly LoadedPlugin[],
  ) {}

  async onModuleInit(): Promise<void> {
    // Wiring that is wrong stops the boot, also where there is no plugin to configure.
    void this.explorer.interceptors;
    void this.classifiers.all;
    for (const plugin of this.plugins) await this.#configure(plugin);
  }

  async #configure(plugin: LoadedPlugin): Promise<void> {
    const own = this.explorer.registeredBy(classOf(plugin.module));
    const { entry } = plugin;
    if (entry !== null && own.length === 0 && !this.classifiers.registeredBy(classOf(plugin.module))) {
      throw new PluginSetupError(`${entry.path}.module "${entry.module}" registers no interceptor`);
    }
    for (const interceptor of own) {
      const config = validated(interceptor, entry?.config ?? {}, entry?.path ?? `plugin "${interceptor.id}"`);
      try {
        await interceptor.hooks.configure?.(config);
      } catch (error) {
        if (error instanceof PluginSetupError) throw error;
        const why = error instanceof Error ? error.message.split('\n')[0] : 'unknown error';
        throw new PluginSetupError(
          `${entry?.path ?? 'plugin'}: "${interceptor.id}" refused its config: ${why}`,
        );
      }
    }
  }
}

function classOf(module: PluginModule): unknown {
  return typeof module === 'function' ? module : module.module;
}

function validated(interceptor: RegisteredInterceptor, config: object, path: string): object {
  const type = interceptor.options.config;
  if (type === undefined) return config;
  const instance = plainToInstance(type, config);
  const errors = validateSync(instance, { whitelist: true, forbidNonWhitelisted: true });
  const problems = errors.flatMap((error) => flat(error, `${path}.config`));
  if (problems.length > 0) throw new PluginSetupError(problems.join('\n'));
  return instance;
}

function flat(error: ValidationError, parent: string): string[] {
  const path = `${parent}.${error.property}`;
  const own = Object.values(error.constraints ?? {}).map((text) => `${path}: ${text}`);
  return [...own, ...(error.children ?? []).flatMap((child) => flat(child, path))];
}
