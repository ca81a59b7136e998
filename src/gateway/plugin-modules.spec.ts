import 'reflect-metadata';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { forwardRef, Injectable, Module } from '@nestjs/common';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { IsInt, Min } from 'class-validator';
import { createApp, loadConfig } from '../app.factory.js';
import { type ExchangeInterceptor, RegisterInterceptor } from '../contracts/interceptor.js';
import {
  RegisterRoutingPolicy,
  type RoutingChoice,
  type RoutingPolicy,
} from '../contracts/routing-policy.js';
import { loadPlugins } from './plugin-modules.js';
import { asPluginModule, partsOf } from './plugin-parts.js';
import { registrationsIn } from './plugin-registrations.js';
import { PluginExplorer } from './plugin.explorer.js';
import { PluginSetupError } from '../common/errors/plugin-setup-error.js';

let directory = '';

/** A plugin as a file without imports: found by its metadata, as one with its own copy of the package would be. */
const PLUGIN = `
class Plugin { configure(config) { globalThis.llmProxyPluginConfig = config; } }
Reflect.defineMetadata('llm-proxy:interceptor', { id: 'from-file', order: 350 }, Plugin);
export { Plugin };`;

const SECOND = `
class Second { configure(config) { globalThis.llmProxySecondConfig = config; } }
Reflect.defineMetadata('llm-proxy:interceptor', { id: 'second', order: 340 }, Second);
export default Second;`;

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'plugins-'));
  writeFileSync(join(directory, 'good.mjs'), PLUGIN);
  writeFileSync(join(directory, 'two.mjs'), `${PLUGIN}\n${SECOND}`);
  writeFileSync(join(directory, 'twice.mjs'), `${PLUGIN}\n${SECOND.replace('second', 'from-file')}`);
  writeFileSync(join(directory, 'empty.mjs'), 'export const nothing = 1;');
  writeFileSync(join(directory, 'throws.mjs'), "throw new Error('first line\\nsecond line');");
  writeFileSync(join(directory, 'throws-nothing.mjs'), 'throw undefined;');
  writeFileSync(join(directory, 'waits.mjs'), `await new Promise(() => {});${PLUGIN}`);
  writeFileSync(join(directory, 'syntax.mjs'), 'export {');
});

afterAll(() => {
  rmSync(directory, { recursive: true, force: true });
});

const entry = (module: string) => ({ module, config: null, path: ['plugins', 0] });

describe('loadPlugins', () => {
  it('imports a file relative to the configuration, and an absolute one', async () => {
    for (const path of ['./good.mjs', join(directory, 'good.mjs')]) {
      const { plugins, problems } = await loadPlugins([entry(path)], directory, 5000);
      expect(problems).toEqual([]);
      expect(plugins[0]?.modules).toEqual([expect.any(Function)]);
      expect(plugins[0]?.entry?.path).toEqual(['plugins', 0]);
    }
  });

  it('gives up on a file whose import does not come to an end, and goes on with the next', async () => {
    const { plugins, problems } = await loadPlugins(
      [entry('./waits.mjs'), entry('./good.mjs')],
      directory,
      500,
    );
    expect(plugins).toHaveLength(1);
    const message =
      'cannot load "./waits.mjs": it did not come to an end within 0.5 s; an await at its top level';
    expect(problems).toEqual([
      { path: ['plugins', 0, 'module'], message: expect.stringContaining(message) as string },
    ]);
  });

  it.each([
    ['./missing.mjs', /^cannot load "\.\/missing\.mjs": .*not found/],
    ['no-such-package-of-anyone', /cannot load "no-such-package-of-anyone": .*not found/],
    ['./throws.mjs', /failed while loading \(Error: first line\)$/],
    ['./syntax.mjs', /cannot load "\.\/syntax\.mjs": it failed while loading/],
    ['./empty.mjs', /registers nothing/],
    ['./throws-nothing.mjs', /it threw no error object/],
  ])('has one problem with %s, and goes on with the next', async (path, message) => {
    const { plugins, problems } = await loadPlugins([entry(path), entry('./good.mjs')], directory, 5000);
    expect(plugins).toHaveLength(1);
    expect(problems).toEqual([{ path: ['plugins', 0, 'module'], message: expect.stringMatching(message) }]);
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
    expect(asPluginModule(SizedModule)).toBe(SizedModule);
    const dynamic = { module: SizedModule };
    expect(asPluginModule(dynamic)).toBe(dynamic);
    expect(asPluginModule(Alpha)).not.toBe(Alpha);
    for (const wrong of [undefined, null, 7, 'x', {}, class {}]) expect(asPluginModule(wrong)).toBeNull();
  });
});

describe('partsOf', () => {
  const idsIn = async (exported: readonly unknown[]): Promise<string[]> => {
    const found = await Promise.all((await partsOf(exported)).map(registrationsIn));
    return found.flat().map(({ name }) => name);
  };
  @Module({ imports: [SizedModule], providers: [Zeta] })
  class OuterModule {}
  @Module({ providers: [{ provide: 'renamed', useClass: Alpha }] })
  class RenamingModule {}
  @Module({ providers: [{ provide: Alpha, useFactory: () => new Alpha() }] })
  class MakingModule {}
  @Module({ imports: [forwardRef(() => SecondModule)], providers: [Alpha] })
  class FirstModule {}
  @Module({ imports: [FirstModule], providers: [Zeta] })
  class SecondModule {}
  const dynamic = { module: class Dynamic {}, providers: [Alpha], imports: [OuterModule] };

  it.each<[string, unknown[], string[]]>([
    ['all marked classes', [Zeta, Alpha, 5, null, class {}, { module: 'm' }], ['zeta', 'alpha']],
    ['one that is exported by two names once', [Zeta, Alpha, Zeta], ['zeta', 'alpha']],
    ['a class beside a module', [Alpha, SizedModule], ['sized', 'alpha']],
    ['a class that a module provides once', [Sized, SizedModule], ['sized']],
    ['the same under another token', [Alpha, RenamingModule], ['alpha']],
    ['none that a module makes itself', [Alpha, MakingModule], []],
    ['a module that another one imports once', [SizedModule, OuterModule], ['zeta', 'sized']],
    ['modules that import each other once', [FirstModule, SecondModule], ['zeta', 'alpha']],
    [
      'a module as it was configured',
      [dynamic, dynamic.module, OuterModule, Sized],
      ['alpha', 'zeta', 'sized'],
    ],
    ['several modules', [RenamingModule, SizedModule], ['alpha', 'sized']],
    ['nothing', [], []],
  ])('takes %s', async (_what, exported, ids) => {
    expect(await idsIn(exported)).toEqual(ids);
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
      /^disable\[0\]: .*"think-tagz".*think-tags/,
    );
  });

  it('tells all that is wrong at once, before anything is instantiated', async () => {
    let made = 0;
    @Injectable()
    @RegisterInterceptor({ id: 'patches' })
    class Shadow implements ExchangeInterceptor {
      constructor() {
        made++;
      }
    }
    const booted = boot([Shadow, Sized, 7], {
      plugins: [{ module: './missing.mjs' }, { module: './good.mjs' }],
    });
    const error = await booted.catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(PluginSetupError);
    expect((error as PluginSetupError).problems.map(({ path }) => path)).toEqual([
      [],
      ['plugins', 0, 'module'],
      [],
      [],
    ]);
    for (const word of ['plugins[2] given to createApp', 'missing.mjs', '"patches"', 'size must'])
      expect((error as Error).message).toContain(word);
    expect(made).toBe(0);
  });

  it('finds what a module imports, behind promises and forward references too', async () => {
    @Module({ providers: [{ provide: 'renamed', useClass: Zeta }] })
    class Inner {}
    @Module({ imports: [forwardRef(() => Inner)] })
    class Middle {}
    @Module({})
    class Outer {}
    const dynamic = { module: Outer, imports: [Promise.resolve({ module: Middle })], providers: [Alpha] };
    expect(await boot([dynamic], { disable: ['zeta'] })).not.toContain('zeta');
    await expect(boot([dynamic, Zeta])).rejects.toThrow(/registered as "zeta"/);
  });

  it('takes a routing policy for a plugin, knows its name, and no other', async () => {
    @Injectable()
    @RegisterRoutingPolicy('backwards')
    class Backwards implements RoutingPolicy {
      order(choices: readonly RoutingChoice[]) {
        return choices.toReversed();
      }
    }
    const models = (order: string) => ({ models: [{ name: 'm', upstreams: ['u'], order }] });
    const plugins = [{ module: './good.mjs' }];
    expect(await boot([Backwards], { ...models('backwards'), plugins })).toContain('from-file');
    await expect(boot([Backwards], { ...models('backward'), plugins })).rejects.toThrow(
      /^models\[0\]\.order: no routing policy has the name "backward"; known: backwards, .*did you mean "backwards"\?$/,
    );
    @Injectable()
    @RegisterRoutingPolicy('fastest')
    class OtherFastest extends Backwards {}
    await expect(boot([OtherFastest])).rejects.toThrow(/two routing policies are registered as "fastest"/);
    @Injectable()
    @RegisterRoutingPolicy('idle')
    class Idle {}
    await expect(boot([Idle], { ...models('idle'), plugins })).rejects.toThrow(
      'the routing policy "idle" has no method order',
    );
  });

  it('registers every marked class of a file, each with the config of its entry', async () => {
    const plugins = [{ module: './two.mjs', config: { size: 4 } }];
    const ids = await boot([], { plugins });
    expect(ids.filter((id) => id === 'second' || id === 'from-file')).toEqual(['second', 'from-file']);
    const configured = globalThis as Record<string, unknown>;
    expect(configured['llmProxyPluginConfig']).toEqual({ size: 4 });
    expect(configured['llmProxySecondConfig']).toEqual({ size: 4 });
    expect(await boot([], { plugins, disable: ['second'] })).not.toContain('second');
  });

  it('refuses two of one id', async () => {
    await expect(boot([], { plugins: [{ module: './twice.mjs' }] })).rejects.toThrow(
      /^plugins\[0\]\.module: two interceptors are registered as "from-file"/,
    );
    await expect(boot([Alpha, OtherAlpha])).rejects.toThrow(/two interceptors are registered as "alpha"/);
  });

  it('hands a plugin its config as an instance of its class, and names the place of a bad one', async () => {
    await boot([], { plugins: [{ module: join(directory, 'good.mjs'), config: { size: 3 } }] });
    expect((globalThis as Record<string, unknown>)['llmProxyPluginConfig']).toEqual({ size: 3 });
    await expect(boot([Sized])).rejects.toThrow(/^plugin "sized"\.config\.size: size must/);
  });
});
