import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { ServiceProcess } from '../support/process.js';
import { waitFor } from '../support/wait-for.js';

describe('a plugin named in the file (spec 01 §2)', () => {
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

  it.each([
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
    ['the same one twice', [{ module: AUDIT }, { module: AUDIT }], /registered as "audit"/],
  ])('stops the boot with one clear line: %s', async (_what, plugins, expected) => {
    const service = new ServiceProcess({
      config: config(plugins),
      files: { 'empty.mjs': 'export const nothing = 1;', 'throws.mjs': "throw new Error('at load');" },
    });
    expect(await service.exit()).toEqual({ code: 1, signal: null });
    expect(service.stderr).toMatch(expected);
    expect(service.stderr).toMatch(/^\[llm-proxy\] /);
    expect(service.stderr).not.toMatch(/\n\s+at /);
    expect(service.stderr.trimEnd().split('\n')).toHaveLength(1);
  });
});
