import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { createApp, loadConfig } from 'llm-proxy';
import { onTestFinished } from 'vitest';

/** Where the build puts these plugins; relative modules of the configuration are found from here. */
const BUILT_PLUGINS = fileURLToPath(new URL('../../dist/examples/plugins/', import.meta.url));

/**
 * A gateway with these plugins in front of one provider that answers as told; lives as long as the test. `named` is the
 * `plugins` value of the file, `given` are plugins in code. Gives the gateway's address.
 */
export async function startGateway(
  named: string,
  answer: (response: ServerResponse) => void,
  given: readonly unknown[] = [],
): Promise<string> {
  const provider = createServer((_request, response) => answer(response));
  await new Promise<void>((resolve) => provider.listen(0, '127.0.0.1', () => resolve()));
  onTestFinished(() => new Promise((resolve) => provider.close(() => resolve())));
  const text = `
providers: [{ id: p, url: 'http://127.0.0.1:${(provider.address() as AddressInfo).port}' }]
upstreams: [{ id: u, provider: p, model: real }]
models: [{ name: m, upstreams: [u] }]
plugins: ${named}
`;
  const loaded = loadConfig({ text, directory: BUILT_PLUGINS }, {});
  if (!loaded.ok) throw new Error(loaded.problems.map(({ message }) => message).join('; '));
  const app = await createApp({ config: loaded.config, plugins: given });
  onTestFinished(() => app.close());
  await app.listen({ host: '127.0.0.1', port: 0 });
  return `http://127.0.0.1:${(app.getHttpServer().address() as AddressInfo).port}`;
}
