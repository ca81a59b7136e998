import 'reflect-metadata';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Injectable, Module } from '@nestjs/common';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { IsInt, Min } from 'class-validator';
import { createApp, loadConfig } from '../app.factory.js';
import { type ExchangeInterceptor, RegisterInterceptor } from '../contracts/interceptor.js';
import { asPluginModule, loadPlugins } from './plugin-modules.js';
import { PluginExplorer } from './plugin.explorer.js';
import { PluginSetupError } from './plugin-setup-error.js';

let directory = '';

/** A plugin as a file without imports: found by its metadata, as one with its own copy of the package would be. */
const PLUGIN = `
class Plugin { configure(config) { globalThis.llmProxyPluginConfig = config; } }
Reflect.defineMetadata('llm-proxy:interceptor', { id: 'from-file', order: 350 }, Plugin);
export { Plugin };`;

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'plugins-'));
  writeFileSync(join(directory, 'good.mjs'), PLUGIN);
  writeFileSync(join(directory, 'empty.mjs'), 'export const nothing = 1;');
  writeFileSync(join(directory, 'throws.mjs'), "throw new Error('first line\\nsecond line');");
  writeFileSync(join(directory, 'syntax.mjs'), 'export {');
});

afterAll(() => {
  rmSync(directory, { recursive: true, force: true });
});

const entry = (module: string) => ({ module, config: null, path: 'plugins[0]' });

describe('loadPlugins', () => {
  it('imports a file relative to the configuration, and an absolute one', async () => {
    for (const path of ['./good.mjs', join(directory, 'good.mjs')]) {
      const [plugin] = await loadPlugins([entry(path)], directory);
      expect(typeof plugin?.module).toBe('function');
      expect(plugin?.entry?.path).toBe('plugins[0]');
    }
  });

  it.each([
    ['./missing.mjs', /plugins\[0\]\.module: cannot load "\.\/missing\.mjs": .*not found/],
    ['no-such-package-of-anyone', /cannot load "no-such-package-of-anyone": .*not found/],
    ['./throws.mjs', /failed while loading \(Error: first line\)$/],
    ['./syntax.mjs', /cannot load "\.\/syntax\.mjs": it failed while loading/],
    ['./empty.mjs', /registers nothing/],
  ])('stops the boot for %s in one line', async (path, message) => {
    const loading = loadPlugins([entry(path)], directory);
    await expect(loading).rejects.toThrow(PluginSetupError);
    await expect(loading).rejects.toThrow(message);
  });
});

@Injectable()
@RegisterInterceptor({ id: 'zeta', order: 300 })
class Zeta implements ExchangeInterceptor {}

@Injectable()
@RegisterInterceptor({ id: 'alpha', order: 300 })
class Alpha implements ExchangeInterceptor {}

@Injectable()
@RegisterInterceptor({ id: 'alpha' })
class OtherAlpha implements ExchangeInterceptor {}

class Settings {
  @IsInt()
  @Min(1)
  size = 0;
}

@Injectable()
@RegisterInterceptor({ id: 'sized', config: Settings })
class Sized implements ExchangeInterceptor {
  configure(): void {}
}

@Module({ providers: [Sized] })
class SizedModule {}

describe('asPluginModule', () => {
  it('takes a module, a dynamic module, a bare provider, and nothing else', () => {
    expect(asPluginModule(SizedModule, 'x')).toBe(SizedModule);
    const dynamic = { module: SizedModule };
    expect(asPluginModule(dynamic, 'x')).toBe(dynamic);
    expect(asPluginModule(Alpha, 'x')).not.toBe(Alpha);
    for (const wrong of [undefined, null, 7, 'x', {}, class {}])
      expect(() => asPluginModule(wrong, 'the name')).toThrow(/^the name registers nothing/);
  });
});

async function boot(plugins: unknown[], extra: object = {}): Promise<string[]> {
  const loaded = loadConfig(
    {
      text: JSON.stringify({
        providers: [{ id: 'p', url: 'http://127.0.0.1:9/v1' }],
        upstreams: [{ id: 'u', provider: 'p', model: 'm' }],
        models: [{ name: 'm', upstreams: ['u'] }],
        ...extra,
      }),
      directory,
    },
    {},
  );
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
  const app = await createApp({ config: loaded.config, plugins });
  try {
    await app.init();
    return app.get(PluginExplorer).interceptors.map(({ id }) => id);
  } finally {
    await app.close();
  }
}

describe('the wiring of plugins', () => {
  it('orders interceptors by order, then by id, the built-in ones among them', async () => {
    const ids = await boot([Zeta, Alpha]);
    expect(ids.filter((id) => id === 'zeta' || id === 'alpha')).toEqual(['alpha', 'zeta']);
    expect(ids.indexOf('patches')).toBeLessThan(ids.indexOf('alpha'));
    expect(ids.indexOf('think-tags')).toBeGreaterThan(ids.indexOf('zeta'));
  });

  it('leaves out what the file disables, built-in or not, and knows no other names', async () => {
    const ids = await boot([Alpha], { disable: ['think-tags', 'alpha'] });
    expect(ids).not.toContain('think-tags');
    expect(ids).not.toContain('alpha');
    await expect(boot([], { disable: ['think-tagz'] })).rejects.toThrow(
      /disable\[0\].*"think-tagz".*think-tags/,
    );
  });

  it('refuses two of one id', async () => {
    await expect(boot([Alpha, OtherAlpha])).rejects.toThrow(/two interceptors are registered as "alpha"/);
  });

  it('hands a plugin its config as an instance of its class, and names the place of a bad one', async () => {
    await boot([], { plugins: [{ module: join(directory, 'good.mjs'), config: { size: 3 } }] });
    expect((globalThis as Record<string, unknown>)['llmProxyPluginConfig']).toEqual({ size: 3 });
    await expect(boot([Sized])).rejects.toThrow(/plugin "sized"\.config\.size: size must/);
  });
});
