import { describe, expect, it } from 'vitest';
import {
  anyTypes,
  declaredTypes,
  exportedNames,
  type SourceFile,
  sourceFiles,
} from './support/source-tree.js';

/** What declares the parts of packages is no module. */
const all = sourceFiles().filter(({ path }) => !path.endsWith('.d.ts'));
const isTest = ({ path }: SourceFile): boolean => path.endsWith('.spec.ts');
const files = all.filter((file) => !isTest(file));

/** The layer of each folder: a file imports from its own layer's folder or from below. */
const LAYERS: Readonly<Record<string, number>> = {
  common: 0,
  contracts: 1,
  config: 1,
  state: 1,
  observability: 1,
  upstreams: 2,
  routing: 2,
  session: 2,
  affinity: 2,
  reasoning: 2,
  patching: 2,
  protocols: 2,
  prober: 2,
  consumers: 2,
  quotas: 2,
  gateway: 3,
  http: 4,
  admin: 4,
};
const TOP = 5;

/** Sideways imports that the design allows between folders of one layer. */
const SIDEWAYS = new Set([
  'routing → upstreams',
  'prober → upstreams',
  'quotas → consumers',
  // What a plugin sees of the configuration are its types, and events and documents are of L0.
  'contracts → config',
  'config → contracts',
  'observability → contracts',
  'observability → config',
  'state → config',
  'state → contracts',
]);

/** The files of the top that only start the process. */
const TOP_FILES = [
  'app.factory.ts',
  'app.module.ts',
  'bootstrap.ts',
  'command-line.ts',
  'main.ts',
  'package-info.ts',
  'shutdown-hooks.ts',
  'shutdown.ts',
  'stop-signals.ts',
];

const folderOf = (path: string): string | null =>
  path.includes('/') ? (path.split('/')[0] as string) : null;
const layerOf = (path: string): number => {
  const folder = folderOf(path);
  return folder === null ? TOP : (LAYERS[folder] ?? Number.NaN);
};

/** Every import that the check objects to, as `from → to`. */
function offenders(check: (file: SourceFile, specifier: string, target: string | null) => boolean): string[] {
  return files.flatMap((file) =>
    file.imports
      .filter(({ specifier, target }) => check(file, specifier, target))
      .map(({ specifier, target }) => `${file.path} → ${target ?? specifier}`),
  );
}

const packageOf = (specifier: string): string =>
  specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/');

describe('who may import whom (design/architecture: layers)', () => {
  it('sees the source', () => {
    expect(files.length).toBeGreaterThan(100);
    expect(files.flatMap(({ imports }) => imports).length).toBeGreaterThan(300);
  });

  it('every folder has a layer', () => {
    expect(all.map(({ path }) => path).filter((path) => Number.isNaN(layerOf(path)))).toEqual([]);
    expect(
      files.map(({ path }) => path).filter((path) => folderOf(path) === null && !TOP_FILES.includes(path)),
    ).toEqual([]);
  });

  it('every import of a file of ours leads to one', () => {
    const known = new Set(all.map(({ path }) => path));
    expect(
      offenders(
        (_file, _specifier, target) => target !== null && !target.startsWith('../') && !known.has(target),
      ),
    ).toEqual([]);
  });

  it('down only', () => {
    expect(
      offenders((file, _specifier, target) => target !== null && layerOf(target) > layerOf(file.path)),
    ).toEqual([]);
  });

  it('no feature imports another sideways', () => {
    const sideways = offenders((file, _specifier, target) => {
      if (target === null || layerOf(file.path) === TOP || layerOf(target) !== layerOf(file.path))
        return false;
      const [from, to] = [folderOf(file.path), folderOf(target)];
      return from !== to && !SIDEWAYS.has(`${from} → ${to}`);
    });
    expect(sideways).toEqual([]);
  });

  it('has no circle of files', () => {
    expect(circles()).toEqual([]);
  });

  it('`common/` is pure: no framework, no I/O, no clock of its own', () => {
    const foreign = offenders(
      (file, specifier, target) =>
        folderOf(file.path) === 'common' &&
        target === null &&
        !['node:buffer', 'node:zlib', 'node:stream', 'node:crypto'].includes(specifier),
    );
    expect(foreign).toEqual([]);
    // The clock that is handed to everybody is the one exception.
    const clocks = files.filter(
      ({ path, text }) =>
        path.startsWith('common/') &&
        path !== 'common/time/clock.ts' &&
        /\b(setTimeout|setInterval|performance\.now\(|process\.)/.test(text),
    );
    expect(clocks.map(({ path }) => path)).toEqual([]);
  });
});

/** A library, and the folders or files that alone may use it. */
const FENCES: readonly (readonly [packages: readonly string[], allowed: readonly string[]])[] = [
  [
    ['fastify', '@fastify/cors'],
    ['http/', 'app.factory.ts'],
  ],
  // The application's type and the adapter are what the factory hands to its callers.
  [['@nestjs/platform-fastify'], ['http/', 'app.factory.ts', 'bootstrap.ts']],
  [['undici'], ['upstreams/']],
  [
    ['prom-client', '@willsoto/nestjs-prometheus'],
    ['observability/', 'http/metrics.controller.ts'],
  ],
  [['yaml'], ['config/']],
  // The log writes to a file descriptor of its own accord: it may not block, and it is no state.
  [
    ['node:fs', 'node:fs/promises', 'fs'],
    ['config/', 'state/', 'observability/log/log-destination.ts', 'package-info.ts'],
  ],
  [
    ['class-validator', 'class-transformer'],
    ['config/', 'admin/', 'gateway/plugin-config.ts'],
  ],
  [['@redis/client', 'redis', 'ioredis'], ['state/']],
  [
    ['pino', 'pino-pretty', 'pino-http', 'nestjs-pino'],
    ['observability/', 'app.factory.ts', 'app.module.ts'],
  ],
  [
    ['@nestjs/schedule', 'cron'],
    ['prober/', 'state/', 'quotas/', 'app.module.ts'],
  ],
];

describe('library fences (design/architecture)', () => {
  it.each(FENCES)('%j only in %j', (packages, allowed) => {
    const found = offenders(
      (file, specifier) =>
        packages.includes(packageOf(specifier)) && !allowed.some((prefix) => file.path.startsWith(prefix)),
    );
    expect(found).toEqual([]);
  });

  it('process.env only in config/', () => {
    expect(
      files
        .filter(({ path, text }) => text.includes('process.env') && !path.startsWith('config/'))
        .map(({ path }) => path),
    ).toEqual([]);
  });

  it('rxjs nowhere, forwardRef nowhere', () => {
    expect(offenders((_file, specifier) => packageOf(specifier) === 'rxjs')).toEqual([]);
    expect(files.filter(({ text }) => /\bforwardRef\s*\(/.test(text)).map(({ path }) => path)).toEqual([]);
  });
});

const ROLES = [
  'module', 'service', 'controller', 'guard', 'filter', 'interceptor', 'transformer', 'adapter', 'policy', 'store',
  'registry', 'types', 'factory',
  // Roles of the engine: each is a class of its own kind.
  'runner', 'shaper', 'reader', 'compiler', 'explorer', 'configurator', 'sender', 'observer', 'transform', 'metrics', 'section',
]; // prettier-ignore

describe('names and sizes (design/architecture)', () => {
  it('files are kebab-case with a known role', () => {
    const kebab = /^[a-z0-9]+(-[a-z0-9]+)*$/;
    const odd = all.filter(({ path }) => {
      const [name = '', ...roles] = (path.split('/').at(-1) as string)
        .replace(/(\.[a-z-]+)?\.spec\.ts$|\.ts$/, '')
        .split('.');
      return !kebab.test(name) || roles.length > 1 || roles.some((role) => !ROLES.includes(role));
    });
    expect(odd.map(({ path }) => path)).toEqual([]);
  });

  it('a file with a role exports the class of its name', () => {
    const nameless = files.filter((file) => {
      const [name = '', role] = (file.path.split('/').at(-1) as string).replace(/\.ts$/, '').split('.');
      if (role === undefined || role === 'types' || role === 'factory') return false;
      const expected = [...name.split('-'), role].join('').replaceAll('-', '');
      return !exportedNames(file).some(
        (exported) => exported.toLowerCase().includes(expected) || expected.includes(exported.toLowerCase()),
      );
    });
    expect(nameless.map(({ path }) => path)).toEqual([]);
  });

  it('no `I` prefix, Impl, Manager, Helper, Util', () => {
    const bad = all.flatMap((file) =>
      declaredTypes(file)
        .filter((name) => /^I[A-Z][a-z]/.test(name) || /(Impl|Manager|Helpers?|Utils?)$/.test(name))
        .map((name) => `${file.path}: ${name}`),
    );
    expect(bad).toEqual([]);
    expect(
      all
        .map(({ path }) => path)
        .filter((path) => /(^|[/.-])(util|utils|helper|helpers|manager|impl)([/.-]|$)/.test(path)),
    ).toEqual([]);
  });

  it('no file over 400 lines, the median at most 100', () => {
    expect(all.filter(({ lines }) => lines > 400).map(({ path, lines }) => `${path}: ${lines}`)).toEqual([]);
    const sizes = files.map(({ lines }) => lines).sort((a, b) => a - b);
    expect(sizes[Math.floor(sizes.length / 2)]).toBeLessThanOrEqual(100);
  });

  it('no `any`', () => {
    expect(all.filter((file) => anyTypes(file) > 0).map(({ path }) => path)).toEqual([]);
  });

  it('imports of ours end in .js', () => {
    expect(
      all.flatMap(({ imports, path }) =>
        imports
          .filter(({ specifier }) => specifier.startsWith('.') && !/\.(js|json)$/.test(specifier))
          .map(({ specifier }) => `${path} → ${specifier}`),
      ),
    ).toEqual([]);
  });
});

/** Circles of imports that exist at run time. */
function circles(): string[] {
  const byPath = new Map(files.map((file) => [file.path, file]));
  const state = new Map<string, 'open' | 'done'>();
  const found: string[] = [];
  const walk = (path: string, trail: readonly string[]): void => {
    if (state.get(path) === 'done') return;
    if (state.get(path) === 'open') {
      found.push([...trail.slice(trail.indexOf(path)), path].join(' → '));
      return;
    }
    state.set(path, 'open');
    for (const { target, typeOnly } of byPath.get(path)?.imports ?? []) {
      if (target !== null && !typeOnly) walk(target, [...trail, path]);
    }
    state.set(path, 'done');
  };
  for (const { path } of files) walk(path, []);
  return found;
}
