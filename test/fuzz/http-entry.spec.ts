import { connect } from 'node:net';
import type { AddressInfo } from 'node:net';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createApp, loadConfig } from '../../src/app.factory.js';
import { OpenRequests } from '../../src/http/open-requests.js';
import { RawConnection } from '../support/raw-client.js';
import { ScriptedUpstream } from '../support/scripted-upstream.js';
import { waitFor } from '../support/wait-for.js';
import { chance, faultIn, hostileBytes } from './hostile-request.js';

const RUNS = 400;
const AT_ONCE = 20;
/** An answer that is to come has come by then; what follows is silence. */
const QUIET_MS = 60;

let app: NestFastifyApplication;
let provider: ScriptedUpstream;
let port = 0;
const uncaught: unknown[] = [];
const note = (error: unknown) => void uncaught.push(error);

beforeAll(async () => {
  provider = await ScriptedUpstream.start();
  // Damage inside a message is the provider's to refuse; here it takes anything.
  provider.always((_, answer) => answer.json(200, '{"choices":[]}'));
  const loaded = loadConfig(
    {
      text: JSON.stringify({
        providers: [{ id: 'p', url: provider.url }],
        upstreams: [{ id: 'u', provider: 'p', model: 'real' }],
        models: [{ name: 'm', upstreams: ['u'] }],
      }),
    },
    {},
  );
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
  app = await createApp({ config: loaded.config });
  await app.listen({ host: '127.0.0.1', port: 0 });
  port = (app.getHttpServer().address() as AddressInfo).port;
  process.on('uncaughtException', note).on('unhandledRejection', note);
});

afterAll(async () => {
  process.off('uncaughtException', note).off('unhandledRejection', note);
  await app.close();
  await provider.stop();
});

async function send(bytes: Buffer): Promise<Buffer> {
  const pieces: Buffer[] = [];
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => {}).on('data', (piece) => pieces.push(piece));
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  socket.write(bytes);
  let seen = -1;
  while (seen < pieces.length && !socket.closed) {
    seen = pieces.length;
    await Promise.race([closed, new Promise((resolve) => setTimeout(resolve, QUIET_MS))]);
  }
  socket.resetAndDestroy();
  await closed;
  return Buffer.concat(pieces);
}

describe('the HTTP entry under hostile bytes', () => {
  it('answers in the form of OpenAI or closes, and lives on', async () => {
    const seed = Number(process.env['FUZZ_SEED'] ?? 20_240_607);
    const random = chance(seed);
    const faults: string[] = [];
    let answered = 0;
    for (let i = 0; i < RUNS; i += AT_ONCE) {
      const inputs = Array.from({ length: AT_ONCE }, () => hostileBytes(random));
      const answers = await Promise.all(inputs.map(send));
      for (const [j, answer] of answers.entries()) {
        if (answer.length > 0) answered++;
        const fault = faultIn(answer);
        if (fault !== null)
          faults.push(
            `seed ${seed}, run ${i + j}: ${fault} to ${JSON.stringify(inputs[j]?.toString('latin1').slice(0, 400))}`,
          );
      }
    }
    expect(faults).toEqual([]);
    expect(uncaught.map(String)).toEqual([]);
    expect(answered).toBeGreaterThan(RUNS / 4);
    const connection = new RawConnection(port);
    const alive = await connection.send({ body: { model: 'm', messages: [] } }).end();
    expect(alive.status).toBe(200);
    connection.close();
    await waitFor(() => app.get(OpenRequests).count === 0, 'nothing is left open');
    const metrics = new RawConnection(port);
    const { text } = await metrics.send({ path: '/metrics' }).end();
    expect(text).toContain('llm_proxy_upstream_inflight{upstream="u",provider="p"} 0');
    metrics.close();
  });
});
