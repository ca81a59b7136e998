import { connect, type AddressInfo, createServer, type Socket } from 'node:net';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { DONE, delta } from '../support/answers.js';
import { BlackHole } from '../support/black-hole.js';
import { ServiceProcess } from '../support/process.js';
import { RawConnection, type RawAnswer } from '../support/raw-client.js';
import { ScriptedUpstream, type Script } from '../support/scripted-upstream.js';
import { secretKey } from '../support/secret-watch.js';
import { stage } from '../support/stage.js';
import { gate, waitFor } from '../support/wait-for.js';

const BODY = { model: 'm', messages: [{ role: 'user', content: 'hi' }] };
const STREAM = { ...BODY, stream: true };

async function upstreamOf(): Promise<ScriptedUpstream> {
  const upstream = await ScriptedUpstream.start();
  onTestFinished(() => upstream.stop());
  return upstream;
}

function configFor(urls: readonly string[], server: object = {}, further: object = {}): object {
  const ids = urls.map((_, i) => 'abc'.charAt(i));
  return {
    server: { host: '127.0.0.1', port: 0, ...server },
    providers: urls.map((url, i) => ({ id: `p${ids[i]}`, url, key: secretKey(ids[i] ?? '') })),
    upstreams: ids.map((id) => ({ id, provider: `p${id}`, model: 'real' })),
    models: [{ name: 'm', upstreams: ids }],
    ...further,
  };
}

describe('a provider whose host answers no connect', () => {
  it.each([
    ['a stream: no first byte in time', STREAM, 'TIMEOUT: no first byte within 100ms'],
    ['no stream: the request timeout', BODY, 'request timeout after 200ms'],
  ])('%s → failover, and the slot is free', async (_what, body, reason) => {
    const hole = await BlackHole.open();
    onTestFinished(() => hole.close());
    const set = await stage({
      upstreams: 2,
      upstream: (i) =>
        i === 0 ? { first_byte_timeout: 'PT0.1S', request_timeout: 'PT0.2S', max_concurrency: 1 } : {},
      file: ([, b]) => ({
        providers: [
          { id: 'pa', url: `http://127.0.0.1:${hole.port}/v1` },
          { id: 'pb', url: b?.url },
        ],
      }),
    });
    expect((await set.gateway.send({ body }).end()).header('x-llm-proxy-upstream')).toBe('b');
    expect(set.gateway.messages.join('\n')).toContain(`upstream=a ${reason} → failover`);
    expect(await set.gateway.inflight('a')).toBe(0);
  });
});

describe('no file descriptor left', () => {
  it('is a failure of the attempt, not of the upstream; the process goes on and recovers', async () => {
    const up = await upstreamOf();
    const rests = { provider: 'pa', model: 'real', backoff: 'PT1H', probe_interval: 'PT0S' };
    const config = { ...configFor([up.url]), upstreams: [{ id: 'a', ...rests }] };
    const service = await ServiceProcess.listening({ config, openFilesLimit: 64 });
    const first = new RawConnection(service.port);
    expect((await first.send({ method: 'GET', path: '/healthz' }).end()).status).toBe(200);
    const crowd: RawConnection[] = [first];
    // Each holds a descriptor of the service; the last one finds none.
    for (let ending: string | null = 'complete'; ending === 'complete' && crowd.length < 100;) {
      const one = new RawConnection(service.port);
      crowd.push(one);
      ending = (await one.send({ method: 'GET', path: '/healthz' }).end()).ending;
    }
    expect(crowd.length).toBeLessThan(100);
    const answer = await first.send({ body: BODY }).end();
    expect(answer.status).toBe(503);
    await waitFor(() => service.stdout.includes('no file descriptor left → failover'), 'the log says why');
    for (const one of crowd) one.close();
    await waitFor(async () => (await service.send({ body: BODY }).end()).status === 200, 'it recovered');
    const metrics = (await service.get('/metrics')).text;
    expect(metrics).toContain('llm_proxy_upstream_inflight{upstream="a",provider="pa"} 0');
    expect(metrics).toContain('llm_proxy_upstream_cooling_seconds{upstream="a",provider="pa"} 0');
  });
});

describe('five thousand idle client connections', () => {
  it('hinder nobody, and not the end', async () => {
    const up = await upstreamOf();
    const service = await ServiceProcess.listening({ config: configFor([up.url]) });
    const idle: Socket[] = [];
    onTestFinished(() => idle.forEach((socket) => socket.destroy()));
    for (let i = 0; i < 50; i++) {
      const batch = Array.from({ length: 100 }, () => connect(service.port, '127.0.0.1'));
      idle.push(...batch);
      await Promise.all(
        batch.map(
          (socket) => new Promise((resolve, reject) => socket.once('connect', resolve).once('error', reject)),
        ),
      );
    }
    for (const socket of idle) socket.on('error', () => {});
    expect((await service.send({ body: STREAM }).end()).text.endsWith(DONE)).toBe(true);
    expect(idle.filter(({ destroyed }) => destroyed)).toEqual([]);
    service.kill('SIGTERM');
    expect(await service.exit()).toEqual({ code: 0, signal: null });
  });
});

describe('a full disk under the log', () => {
  it('loses lines, counts them, and hinders no request', async () => {
    const free = createServer();
    await new Promise<void>((resolve) => free.listen(0, '127.0.0.1', resolve));
    const { port } = free.address() as AddressInfo;
    await new Promise((resolve) => free.close(resolve));
    const up = await upstreamOf();
    const service = new ServiceProcess({
      config: configFor([up.url], { port }),
      stdoutTo: '/dev/full',
      environment: { LOG_LEVEL: 'debug' },
    });
    const send = (request: object): RawAnswer => new RawConnection(port).send(request);
    await waitFor(
      async () => (await send({ method: 'GET', path: '/healthz' }).end()).status === 200,
      'it listens',
      20_000,
    );
    for (let i = 0; i < 20; i++) expect((await send({ body: BODY }).end()).status).toBe(200);
    await waitFor(async () => {
      const { text } = await send({
        method: 'GET',
        path: '/metrics',
        headers: { connection: 'close' },
      }).end();
      return Number(/^llm_proxy_log_lines_dropped (\d+)$/m.exec(text)?.[1] ?? 0) > 20;
    }, 'lost lines are counted');
    service.kill('SIGTERM');
    expect(await service.exit()).toEqual({ code: 0, signal: null });
    expect(service.stderr).toBe('');
  });
});

describe('SIGTERM with two hundred running streams', () => {
  async function twoHundred(
    script: Script,
    server: object,
  ): Promise<{ service: ServiceProcess; answers: RawAnswer[] }> {
    const up = await upstreamOf();
    up.always(script);
    const service = await ServiceProcess.listening({ config: configFor([up.url], server) });
    const answers = Array.from({ length: 200 }, () => service.send({ body: STREAM }));
    await Promise.all(answers.map((answer) => answer.saw('begin')));
    service.kill('SIGTERM');
    await waitFor(() => service.stdout.includes('SIGTERM, draining'), 'it drains');
    return { service, answers };
  }

  it('all of them finish', async () => {
    const hold = gate();
    const { service, answers } = await twoHundred(async (_r, answer) => {
      await answer.sseHead();
      await answer.write(delta('begin'));
      await hold.opened;
      await answer.end(DONE);
    }, {});
    expect((await service.get('/readyz')).status).toBe(503);
    hold.open();
    for (const answer of answers) expect((await answer.end()).text.endsWith(DONE)).toBe(true);
    expect(await service.exit()).toEqual({ code: 0, signal: null });
  });

  it('those that do not within the grace are all told', async () => {
    const { service, answers } = await twoHundred(
      async (_r, answer) => {
        await answer.sseHead();
        await answer.write(delta('begin'));
      },
      { shutdown_grace: 'PT0.2S' },
    );
    for (const answer of answers) {
      await answer.end();
      expect(answer.text.match(/upstream_stream_interrupted/g)).toHaveLength(1);
      expect(answer.text).not.toContain('[DONE]');
    }
    expect(await service.exit()).toEqual({ code: 0, signal: null });
  });
});

describe('a process that stood still for two seconds', () => {
  const BLOCKING = `import { writeSync } from 'node:fs';
import { RegisterInterceptor } from '${new URL('../../dist/contracts/index.js', import.meta.url).href}';
export class Blocking {
  onRequest(exchange) {
    if (exchange.headers['x-block'] === undefined) return;
    writeSync(2, 'blocking\\n');
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2000);
  }
}
RegisterInterceptor({ id: 'blocking' })(Blocking);`;

  it('blames no provider that answered meanwhile', async () => {
    const [a, b] = [await upstreamOf(), await upstreamOf()];
    const hold = gate();
    a.next(async (_r, answer) => {
      await hold.opened;
      await answer.sse([delta('late'), DONE]);
    });
    const service = await ServiceProcess.listening({
      config: configFor(
        [a.url, b.url],
        {},
        {
          plugins: [{ module: './blocking.mjs' }],
          upstreams: ['a', 'b'].map((id) => ({
            id,
            provider: `p${id}`,
            model: 'real',
            first_byte_timeout: 'PT1.5S',
          })),
        },
      ),
      files: { 'blocking.mjs': BLOCKING },
    });
    const waiting = service.send({ body: STREAM });
    await a.chat(0);
    const blocking = service.send({ body: STREAM, headers: { 'x-block': '1' } });
    await waitFor(() => service.stderr.includes('blocking'), 'it stands still');
    hold.open();
    await waiting.end();
    expect([waiting.header('x-llm-proxy-upstream'), waiting.text.endsWith(DONE)]).toEqual(['a', true]);
    expect((await blocking.end()).text.endsWith(DONE)).toBe(true);
    expect(service.stdout).not.toContain('failover');
  });
});

describe('a wall clock that is set', () => {
  it('back: a rest ends all the same', async () => {
    onTestFinished(() => void vi.useRealTimers());
    const set = await stage({ upstreams: 2, upstream: { backoff: 'P1M', probe_interval: 'PT0S' } });
    set.a.next((_r, answer) => answer.error(503));
    expect((await set.chat().end()).header('x-llm-proxy-upstream')).toBe('b');
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() - 3_600_000 });
    await waitFor(
      async () => (await set.chat().end()).header('x-llm-proxy-upstream') === 'a',
      'the rest was over',
    );
    for (const line of set.gateway.messages) expect(line).not.toMatch(/duration=-/);
  });

  it('ahead: a rest does not end earlier, nothing times out', async () => {
    onTestFinished(() => void vi.useRealTimers());
    const set = await stage({ upstreams: 2, upstream: { backoff: 'P1M', probe_interval: 'PT0S' } });
    const hold = gate();
    set.b.next(async (_r, answer) => {
      await answer.sseHead();
      await answer.write(delta('begin'));
      await hold.opened;
      await answer.end(DONE);
    });
    set.a.next((_r, answer) => answer.error(503, { 'retry-after': '600' }));
    const running = await set.stream().saw('begin');
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 86_400_000 });
    expect((await set.chat().end()).header('x-llm-proxy-upstream')).toBe('b');
    hold.open();
    expect((await running.end()).text.endsWith(DONE)).toBe(true);
  });
});
