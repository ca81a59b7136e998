import { type AddressInfo, connect, type Socket } from 'node:net';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createApp, loadConfig } from '../../src/app.factory.js';
import { RunningExchanges } from '../../src/gateway/running-exchanges.js';
import { OpenRequests } from '../../src/http/open-requests.js';
import { RawConnection } from '../support/raw-client.js';
import { ScriptedUpstream } from '../support/scripted-upstream.js';
import { waitFor } from '../support/wait-for.js';
import { chance, faultIn, hostileBytes } from './hostile-request.js';

const RUNS = 400;
const AT_ONCE = 20;
/** An answer that is to come has come by then; what follows is silence. */
const QUIET_TURNS = 20;

let app: NestFastifyApplication;
let provider: ScriptedUpstream;
let port = 0;
let running: RunningExchanges;
/** The service's ends of the connections, by the port of the client's. */
const served = new Map<number, Socket>();
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
  running = app.get(RunningExchanges);
  app.getHttpServer().on('connection', (socket: Socket) => {
    served.set(socket.remotePort ?? 0, socket);
  });
  await app.listen({ host: '127.0.0.1', port: 0 });
  port = (app.getHttpServer().address() as AddressInfo).port;
  process.on('uncaughtException', note).on('unhandledRejection', note);
});

afterAll(async () => {
  process.off('uncaughtException', note).off('unhandledRejection', note);
  await app.close();
  await provider.stop();
});

/** Turns of the event loop that service, provider and this client share; time says nothing on a machine that is busy. */
async function turns(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await new Promise((resolve) => setTimeout(resolve, 1));
}

/** Sends the bytes and takes what comes, until all is read and answered, or waits for bytes that will never come. */
async function send(bytes: Buffer): Promise<Buffer> {
  const pieces: Buffer[] = [];
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => {}).on('data', (piece) => pieces.push(piece));
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  await new Promise<void>((resolve) => {
    socket.once('connect', resolve);
    void closed.then(resolve);
  });
  const clientPort = socket.localPort ?? 0;
  await waitFor(() => served.has(clientPort), 'the service has the connection');
  const server = served.get(clientPort) as Socket;
  served.delete(clientPort);
  socket.write(bytes);
  await waitFor(() => server.bytesRead === bytes.length || server.destroyed, 'all was read');
  let seen = -1;
  while (!socket.closed && (seen < pieces.length || running.size > 0)) {
    seen = pieces.length;
    await Promise.race([closed, turns(QUIET_TURNS)]);
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
    expect(answered).toBeGreaterThan((RUNS * 3) / 4);
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
