import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { ServiceProcess } from '../support/process.js';
import { waitFor } from '../support/wait-for.js';

describe('a plugin named in the file', () => {
  const AUDIT = fileURLToPath(new URL('../../dist/examples/plugins/audit.js', import.meta.url));
  const config = (plugins: object[]): object => ({
    server: { host: '127.0.0.1', port: 0 },
    providers: [{ id: 'p', url: 'http://127.0.0.1:1' }],
    upstreams: [{ id: 'a', provider: 'p', model: 'x' }],
    models: [{ name: 'm', upstreams: ['a'] }],
    plugins,
  });

  it('is loaded, configured and called', async () => {
    const service = await ServiceProcess.listening({
      config: config([{ module: AUDIT, config: { label: 'my-audit' } }]),
    });
    await service.send({ body: { model: 'm', messages: [] }, headers: { 'x-request-id': 'id-7' } }).end();
    await waitFor(() => service.stdout.includes('my-audit'), 'the plugin wrote its line');
    const line = service.lines.find(({ msg }) => msg.includes('my-audit'));
    expect(line?.msg).toBe('[llm-proxy] my-audit: id-7 m a=net_err -> 503');
  });

  const mine = `import { RegisterInterceptor } from '${new URL('../../dist/contracts/index.js', import.meta.url).href}';
export class Mine { onRequest(exchange) { exchange.body.set('mine', 1); } }
RegisterInterceptor({ id: 'mine' })(Mine);`;

  it('is found relative to the file', async () => {
    const service = await ServiceProcess.listening({
      config: config([{ module: './mine.mjs' }]),
      files: { 'mine.mjs': mine },
    });
    expect((await service.get('/healthz')).status).toBe(200);
  });

  it('may be a classifier of errors and nothing else', async () => {
    const contracts = new URL('../../dist/contracts/index.js', import.meta.url).href;
    const classifier = `import { RegisterErrorClassifier } from '${contracts}';
export class Mine { classify({ status }) { return status === 418 ? 'busy' : undefined; } }
RegisterErrorClassifier({ id: 'mine' })(Mine);`;
    const service = await ServiceProcess.listening({
      config: config([{ module: './classifier.mjs' }]),
      files: { 'classifier.mjs': classifier },
    });
    expect((await service.get('/healthz')).status).toBe(200);
  });

  const wrong: [string, object[], RegExp][] = [
    ['a bad config', [{ module: AUDIT, config: { label: 5 } }], /plugins\[0\]\.config\.label/],
    [
      'an unknown key in its config',
      [{ module: AUDIT, config: { lable: 'x' } }],
      /plugins\[0\]\.config\.lable/,
    ],
    ['a file that is missing', [{ module: './missing.js' }], /plugins\[0\]\.module.*missing\.js/],
    ['a package that is missing', [{ module: '@nobody/none-at-all' }], /plugins\[0\]\.module.*none-at-all/],
    ['a file that registers nothing', [{ module: './empty.mjs' }], /plugins\[0\]/],
    ['a file that throws', [{ module: './throws.mjs' }], /plugins\[0\]\.module.*throws\.mjs/],
    ['options without an id', [{ module: './no-id.mjs' }], /of the class Odd: "id" must be a text/],
    ['no options', [{ module: './no-options.mjs' }], /of the class Odd needs options: at least/],
    ['an order that is none', [{ module: './no-order.mjs' }], /of the class Odd: "order" must be a number/],
    ['the same one twice', [{ module: AUDIT }, { module: AUDIT }], /plugins\[1\].*registered as "audit"/],
  ];
  const odd = (options: string) =>
    `${mine.split('\n')[0]}\nexport class Odd {}\nRegisterInterceptor(${options})(Odd);`;
  const files = {
    'no-id.mjs': odd('{}'),
    'no-options.mjs': odd(''),
    'no-order.mjs': odd("{ id: 'odd', order: NaN }"),
    'init-null.mjs': `${mine}\nMine.prototype.onModuleInit = () => { throw null; };`,
    'init-error.mjs': `${mine}\nMine.prototype.onModuleInit = async () => { throw new Error('no luck\\nat all'); };`,
    'made-null.mjs': `${mine.replace('{ onRequest', '{ constructor() { throw null; } onRequest')}`,
    'made-error.mjs': `${mine.replace('{ onRequest', "{ constructor() { throw new TypeError('no\\nluck'); } onRequest")}`,
    'empty.mjs': 'export const nothing = 1;',
    'throws.mjs': "throw new Error('at load');",
    'refuses.mjs': `${mine}\nMine.prototype.configure = () => { throw new Error('never with me'); };`,
    'mine.mjs': `${mine}\nsetInterval(() => {}, 1000);\nMine.prototype.configure = () => { throw new Error('ran'); };`,
  };

  async function refused(service: ServiceProcess): Promise<string> {
    expect(await service.exit()).toEqual({ code: 1, signal: null });
    expect(service.stderr).toMatch(/^\[llm-proxy\] /);
    expect(service.stderr).not.toMatch(/\n\s+at /);
    return service.stderr.trimEnd();
  }

  it.each(wrong)('stops the boot with one clear line: %s', async (_what, plugins, expected) => {
    const told = await refused(new ServiceProcess({ config: config(plugins), files }));
    expect(told).toMatch(expected);
    expect(told).toMatch(/ \(line 1\): /);
    expect(told.split('\n')).toHaveLength(1);
  });

  it('stops the boot with one clear line where a dependency of it is nowhere to be had', async () => {
    const service = new ServiceProcess({
      config: config([{ module: './lonely.mjs' }]),
      files: {
        'lonely.mjs': `${mine}\nclass Nowhere {}\nReflect.defineMetadata('design:paramtypes', [Nowhere], Mine);`,
      },
    });
    const told = await refused(service);
    expect(told).toMatch(/^\[llm-proxy\] plugins \(line 1\): .*resolve dependencies of the Mine/);
    expect(told.split('\n')).toHaveLength(1);
    for (const line of service.stdout.trimEnd().split('\n'))
      expect(line).toMatch(/^\{.*"msg":"\[llm-proxy\] /);
    expect(service.stdout).not.toContain('Exception');
  });

  it.each(wrong)('is found by --check in the same words: %s', async (_what, plugins) => {
    const [start, check] = await Promise.all([
      refused(new ServiceProcess({ config: config(plugins), files })),
      refused(new ServiceProcess({ config: config(plugins), files, args: ['--check'] })),
    ]);
    expect(check).toBe(start);
  });

  const several = `
providers: [{ id: p, url: http://127.0.0.1:1 }]
upstreams: [{ id: a, provider: p, model: x }]
models: [{ name: m, upstreams: [a] }]
plugins:
  - module: ${AUDIT}
    config:
      label: audit
      more: 1
  - module: ./missing.js
`;
  const names = several
    .replace('      more: 1\n', '')
    .replace('  - module: ./missing.js\n', 'disable:\n  - audit\n  - audti\n')
    .replace('[a] }', '[a], order: weigthed }');
  it.each<[string, string, string[], RegExp[]]>([
    [
      'modules and configs, --check',
      several,
      ['--check'],
      [/plugins\[0\]\.config\.more \(line 9\): /, /plugins\[1\]\.module \(line 10\): cannot load/],
    ],
    [
      'modules and configs, start',
      several,
      [],
      [/plugins\[0\]\.config\.more \(line 9\): /, /plugins\[1\]\.module \(line 10\): cannot load/],
    ],
    [
      'names, --check',
      names,
      ['--check'],
      [
        /models\[0\]\.order \(line 4\): .*"weighted"\?$/,
        /disable\[1\] \(line 11\): .*"audti"; .*did you mean "audit"\?$/,
      ],
    ],
    [
      'names, start',
      names,
      [],
      [
        /models\[0\]\.order \(line 4\): .*"weighted"\?$/,
        /disable\[1\] \(line 11\): .*"audti"; .*did you mean "audit"\?$/,
      ],
    ],
  ])('all that is wrong is told at once, each with its line: %s', async (_what, text, args, expected) => {
    const told = await refused(new ServiceProcess({ config: text, files, args }));
    expect(told.split('\n')).toEqual(expected.map((line) => expect.stringMatching(line) as unknown));
  });

  it('a refusal of its own has a line too', async () => {
    const told = await refused(
      new ServiceProcess({ config: config([{ module: './refuses.mjs', config: {} }]), files }),
    );
    expect(told).toMatch(
      / plugins\[0\]\.config \(line 1\): plugin "mine" refused its config: never with me$/,
    );
  });

  it.each([
    [
      'init-null',
      /plugins\[0\]\.module \(line 1\): plugin "mine" failed in onModuleInit \(it threw no error object\)$/,
    ],
    [
      'init-error',
      /plugins\[0\]\.module \(line 1\): plugin "mine" failed in onModuleInit \(Error: no luck\)$/,
    ],
    [
      'made-error',
      /plugins\[0\]\.module \(line 1\): what makes a provider of "\.\/made-error\.mjs" failed \(TypeError: no\)$/,
    ],
    ['made-null', /plugins \(line 1\): what makes a provider of one threw no error object$/],
  ])('what it throws when it starts has one line, whatever it is: %s', async (name, expected) => {
    const told = await refused(new ServiceProcess({ config: config([{ module: `./${name}.mjs` }]), files }));
    expect(told).toMatch(expected);
    expect(told.split('\n')).toHaveLength(1);
  });

  it('--check runs no plugin, and ends whatever a module began when it was loaded', async () => {
    const service = new ServiceProcess({
      config: config([{ module: './mine.mjs' }]),
      files,
      args: ['--check'],
    });
    expect(await service.exit()).toEqual({ code: 0, signal: null });
    expect([service.stderr, service.stdout]).toEqual(['', expect.stringContaining('config ok')]);
  });
});
