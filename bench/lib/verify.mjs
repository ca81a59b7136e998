// Before a target is measured: does it do the job at all?
import { buildRequest, Load } from '../load.mjs';
import { startTarget } from './targets.mjs';

/** Proxies that must rename the model; nginx and Portkey only pass it on. */
const RENAMES = new Set(['us', 'naive', 'splice']);

/** Others' programs: what they cannot do is said, and no error of ours. */
const PEERS = new Set(['portkey', 'nginx']);

/** Starts a target and sends it one request; null when it does not do the job. */
export async function startVerified(variant, body, { provider, warn }, errors) {
  let target = null;
  try {
    target = await startTarget(variant);
    await verify(target, body, provider, errors, variant.keys?.[0]);
    return target;
  } catch (error) {
    await target?.stop();
    warn(`${variant.name} left out: ${error.message}`);
    if (!PEERS.has(variant.kind)) errors.note(variant.name, 1, [error.message]);
    return null;
  }
}

/** Models of ours whose patch sets the temperature. */
const PATCHED = /^(bench-model|big-\d+)$/;

/** One request through the target, seen from the provider's side; what is wrong counts as an error. */
async function verify(target, body, provider, errors, key) {
  const captured = provider.capture();
  const load = new Load({
    port: target.port,
    requests: [buildRequest({ port: target.port, headers: target.headers, key, body })],
    connections: 1,
    once: true,
  });
  await load.open();
  load.start();
  await load.stop();
  load.close();
  if (load.errors > 0) throw new Error(`${target.name} does not answer: ${load.errorSamples.join('; ')}`);
  const { head, body: sent } = await captured;
  const problems = [];
  if (RENAMES.has(target.kind)) {
    const got = JSON.parse(sent);
    const asked = JSON.parse(body);
    if (!String(got.model).startsWith('real-model')) problems.push(`model is ${got.model}`);
    if (JSON.stringify(got.messages) !== JSON.stringify(asked.messages))
      problems.push('messages were changed');
    if (!/\r\nauthorization: Bearer bench-key/i.test(head)) problems.push('no key of the provider');
    if (
      target.kind === 'us' &&
      PATCHED.test(asked.model) &&
      asked.temperature !== undefined &&
      got.temperature !== 0.2
    ) {
      problems.push('the patch is missing');
    }
  }
  errors.note(target.name, problems.length, problems);
}
