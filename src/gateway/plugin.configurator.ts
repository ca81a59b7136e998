import { Inject, Injectable, type OnModuleInit } from '@nestjs/common';
import { ErrorClassifiers } from './error-classifiers.js';
import { readSettings } from './plugin-config.js';
import { classOf } from './plugin-registrations.js';
import { failedIn, inTime, PluginLateError } from './plugin-time-limit.js';
import { PluginExplorer } from './plugin.explorer.js';
import type { LoadedPlugin } from './plugin-modules.js';
import { PluginSetupError } from '../common/errors/plugin-setup-error.js';

/** Injection token of the plugins that were given or named. */
export const LOADED_PLUGINS = Symbol.for('llm-proxy:loaded-plugins');

/** Injection token of the milliseconds that `configure` of a plugin may take. */
export const PLUGIN_START_LIMIT = Symbol.for('llm-proxy:plugin-start-limit');

/** Hands each plugin its `config` of the file, read by the plugin's own class, before the service listens. */
@Injectable()
export class PluginConfigurator implements OnModuleInit {
  constructor(
    private readonly explorer: PluginExplorer,
    private readonly classifiers: ErrorClassifiers,
    @Inject(LOADED_PLUGINS) private readonly plugins: readonly LoadedPlugin[],
    @Inject(PLUGIN_START_LIMIT) private readonly limitMs: number,
  ) {}

  async onModuleInit(): Promise<void> {
    // Wiring that is wrong stops the boot, also where there is no plugin to configure.
    void this.explorer.interceptors;
    void this.classifiers.all;
    for (const plugin of this.plugins) await this.#configure(plugin);
  }

  async #configure({ modules, entry }: LoadedPlugin): Promise<void> {
    const path = entry === null ? [] : [...entry.path, 'config'];
    for (const interceptor of modules.flatMap((module) => this.explorer.registeredBy(classOf(module)))) {
      const { id, options, hooks } = interceptor;
      const { settings, problems } = readSettings(options, entry?.config ?? {}, entry?.path ?? null);
      if (problems.length > 0) throw new PluginSetupError(problems);
      try {
        await inTime(hooks.configure?.(settings), this.limitMs);
      } catch (error) {
        if (error instanceof PluginSetupError) throw error;
        if (error instanceof PluginLateError)
          throw new PluginSetupError([failedIn(path, `plugin "${id}"`, 'configure', error)]);
        const why = error instanceof Error ? error.message.split('\n')[0] : 'unknown error';
        throw new PluginSetupError([{ path, message: `plugin "${id}" refused its config: ${why}` }]);
      }
    }
  }
}
