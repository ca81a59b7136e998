import { createServer, type AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';
import { describe, expect, it } from 'vitest';
import { completion, DONE, delta } from '../support/answers.js';
import { ServiceProcess } from '../support/process.js';
import { type Script, ScriptedUpstream } from '../support/scripted-upstream.js';
import { secretKey } from '../support/secret-watch.js';
import { gate, waitFor } from '../support/wait-for.js';

const BODY = { model: 'm', messages: [{ role: 'user', content: 'hi' }] };

async function upstreamOf(): Promise<ScriptedUpstream> {
  const upstream = await ScriptedUpstream.start();
  onTestFinished(() => upstream.stop());
  return upstream;
}

function configFor(url: string, server: object = {}): object {
  return {
    server: { host: '127.0.0.1', port: 0, ...server },
    providers: [{ id: 'p', url, key: secretKey('p'), backoff: 'P1M' }],
    upstreams: [{ id: 'a', provider: 'p', model: 'real', max_concurrency: 4, backoff: 'PT15M' }],
    models: [{ name: 'm', upstreams: ['a'] }],
  };
}

async function freePort(): Promise<{ port: number; close: () => Promise<void> }> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const close = () => new Promise<void>((resolve) => server.close(() => resolve()));
  return { port: (server.address() as AddressInfo).port, close };
}

describe('start', () => {
  it('says what it does in fixed words, as JSON, and nothing without the prefix', async () => {
    const up = await upstreamOf();
    const service = await ServiceProcess.listening({ config: configFor(up.url) });
    const messages = service.lines.map(({ msg }) => msg);
    for (const line of [
      '[llm-proxy] config: providers=1 upstreams=1 models=1',
      `[llm-proxy] server: bind host=127.0.0.1 port=${service.port}`,
      '[llm-proxy] upstream: request_timeout=300000ms',
      '[llm-proxy] backoff: upstreams=a=PT15M providers=p=P1M',
    ]) {
      expect(messages).toContain(line);
    }
    expect(messages.find((msg) => msg.startsWith('[llm-proxy] first_byte_timeout: '))).toMatch(
      /default=PT30S$/,
    );
    expect(messages.find((msg) => msg.startsWith('[llm-proxy] probe_interval: '))).toMatch(/default=PT1S$/);
    for (const msg of messages) expect(msg).toMatch(/^\[llm-proxy\] /);
    expect(service.lines.filter(({ level }) => level >= 40)).toEqual([]);
    expect((await service.send({ body: BODY }).end()).status).toBe(200);
    service.kill('SIGTERM');
    expect(await service.exit()).toEqual({ code: 0, signal: null });
    expect(service.stderr).toBe('');
  });

  it('warns in one line where it can be reached from beyond this machine', async () => {
    const up = await upstreamOf();
    const service = await ServiceProcess.listening({ config: configFor(up.url, { host: '0.0.0.0' }) });
    await waitFor(() => service.lines.some(({ level }) => level === 40), 'it warned');
    expect(service.lines.filter(({ level }) => level === 40)).toHaveLength(1);
    expect(service.lines.find(({ level }) => level === 40)?.msg).toContain('authentication');
  });

  it('finds config.yaml in the working directory, with secrets from the environment', async () => {
    const up = await upstreamOf();
    const service = await ServiceProcess.listening({
      withoutConfigPath: true,
      environment: { SOME_KEY: ` ${secretKey('environment')} ` },
      config: {
        ...configFor(up.url),
        providers: [{ id: 'p', url: up.url, key: '${SOME_KEY}', headers: { 'x-y': '${NOT_SET:-default}' } }],
      },
    });
    await service.send({ body: BODY }).end();
    expect(up.last.header('authorization')).toBe(`Bearer ${secretKey('environment')}`);
    expect(up.last.header('x-y')).toBe('default');
  });

  it('prints for people where asked', async () => {
    const up = await upstreamOf();
    const service = await ServiceProcess.listening({
      config: configFor(up.url),
      environment: { LOG_FORMAT: 'pretty', LOG_LEVEL: 'debug' },
    });
    await service.send({ body: BODY }).end();
    await waitFor(() => service.stdout.includes('done result=ok'), 'the summary was printed');
    for (const line of service.stdout.trimEnd().split('\n')) {
      expect(line).toContain('[llm-proxy] ');
      expect(line).not.toMatch(/^\{/);
    }
  });

  it('a port in use: exit code 1 and one clear line', async () => {
    const taken = await freePort();
    const service = new ServiceProcess({ config: configFor('http://127.0.0.1:1', { port: taken.port }) });
    expect(await service.exit()).toEqual({ code: 1, signal: null });
    expect(service.stderr.trimEnd().split('\n')).toHaveLength(1);
    expect(service.stderr).toContain(String(taken.port));
    expect(service.stderr).not.toMatch(/\n\s+at /);
    expect(service.stdout).not.toContain('EADDRINUSE');
    expect(service.lines.filter(({ level }) => level >= 40)).toEqual([]);
    await taken.close();
  });

  it.each([
    ['a missing file', undefined, /config not found: \/.*config\.yaml/],
    ['no YAML', 'providers: [', /line|:1/],
    [
      'several mistakes',
      {
        providers: [{ id: 'p' }],
        upstreams: [{ id: 'a', provider: 'q', model: 1 }],
        models: [{ name: 'm', upstreams: ['b'] }],
        serwer: {},
      },
      /providers\[0\]\.url[\s\S]*upstreams\[0\]\.provider|upstreams\[0\]\.provider[\s\S]*providers\[0\]\.url/,
    ],
    [
      'an unset variable',
      { providers: [{ id: 'p', url: 'http://x', key: '${NOT_SET}' }], upstreams: [], models: [] },
      /NOT_SET/,
    ],
    [
      'no models',
      {
        providers: [{ id: 'p', url: 'http://x' }],
        upstreams: [{ id: 'a', provider: 'p', model: 'x' }],
        models: [],
      },
      /models/,
    ],
    [
      'a secret in the wrong place',
      {
        providers: [{ id: 'p', url: 'http://x', key: [secretKey('list')] }],
        upstreams: [{ id: 'a', provider: 'p', model: 'x' }],
        models: [{ name: 'm', upstreams: ['a'] }],
      },
      /providers\[0\]\.key/,
    ],
  ])('a bad configuration: exit code 1, every problem, no stack (%s)', async (_what, config, expected) => {
    const service = new ServiceProcess(config === undefined ? {} : { config });
    expect(await service.exit()).toEqual({ code: 1, signal: null });
    expect(service.stderr).toMatch(expected);
    expect(service.stderr).not.toMatch(/\n\s+at /);
    expect(service.stdout).toBe('');
  });
});

describe('the command line', () => {
  it('--check prints the effective values and starts nothing', async () => {
    const config = JSON.stringify(configFor('http://127.0.0.1:1/v1'));
    const service = new ServiceProcess({ args: ['--check', 'other.yaml'], files: { 'other.yaml': config } });
    expect(await service.exit()).toEqual({ code: 0, signal: null });
    for (const word of ['a', 'PT15M', '4', 'PT30S', 'PT5M']) expect(service.stdout).toContain(word);
    expect(service.stdout).not.toContain('bind');
  });

  it('--check of a bad file: exit code 1 with all problems', async () => {
    const service = new ServiceProcess({
      args: ['--check', 'other.yaml'],
      files: { 'other.yaml': 'models: []\nserver: {port: x}\n' },
    });
    expect(await service.exit()).toEqual({ code: 1, signal: null });
    for (const path of ['models', 'server.port', 'providers']) expect(service.stderr).toContain(path);
  });

  it.each(['--help', '-h'])('%s', async (option) => {
    const service = new ServiceProcess({ args: [option] });
    expect(await service.exit()).toEqual({ code: 0, signal: null });
    for (const word of ['--check', 'CONFIG_PATH', 'LOG_LEVEL', 'LOG_FORMAT'])
      expect(service.stdout).toContain(word);
  });

  it('--version', async () => {
    const service = new ServiceProcess({ args: ['--version'] });
    expect(await service.exit()).toEqual({ code: 0, signal: null });
    expect(service.stdout).toMatch(/^\d+\.\d+\.\d+\S*\n$/);
  });

  it.each(['--unknown', 'config.yaml'])('refuses %s', async (argument) => {
    const service = new ServiceProcess({ args: [argument] });
    const { code } = await service.exit();
    expect(code).not.toBe(0);
    expect(service.stderr).toContain('[llm-proxy] ');
    expect(service.stderr).toContain('--check');
    expect(service.stderr).not.toMatch(/\n\s+at /);
  });
});

describe('the end', () => {
  it.each(['SIGTERM', 'SIGINT'] as const)(
    '%s: running answers finish, new ones are refused, exit code 0',
    async (signal) => {
      const up = await upstreamOf();
      const service = await ServiceProcess.listening({ config: configFor(up.url) });
      const hold = gate();
      up.next(async (_r, answer) => {
        await answer.sseHead();
        await answer.write(delta('begin'));
        await hold.opened;
        await answer.end(delta('end') + DONE);
      });
      const running = await service.send({ body: { ...BODY, stream: true } }).saw('begin');
      expect((await service.get('/readyz')).status).toBe(200);
      service.kill(signal);
      await waitFor(async () => (await service.get('/readyz')).status === 503, 'readyz said 503');
      for (const [path, status] of [
        ['/healthz', 200],
        ['/metrics', 200],
        ['/readyz', 503],
      ] as const) {
        const answer = await service.send({ path }).end();
        expect(answer.status).toBe(status);
        expect(answer.headerLines.filter(([name]) => /^(connection|keep-alive)$/.test(name))).toEqual([
          ['connection', 'close'],
        ]);
      }
      for (const refused of [await service.send({ body: BODY }).end(), await service.get('/v1/models')]) {
        expect(refused.status).toBe(503);
        expect(refused.json).toMatchObject({ error: { code: 'shutting_down' } });
        expect(refused.headerLines.filter(([name]) => name === 'connection')).toEqual([
          ['connection', 'close'],
        ]);
        expect(refused.header('retry-after')).toBe('1');
      }
      expect(service.exited).toBe(false);
      hold.open();
      await running.end();
      expect(running.text.endsWith(delta('end') + DONE)).toBe(true);
      expect(running.ending).toBe('complete');
      expect(await service.exit()).toEqual({ code: 0, signal: null });
    },
  );

  it('a request whose head had arrived is finished', async () => {
    const up = await upstreamOf();
    const service = await ServiceProcess.listening({ config: configFor(up.url) });
    const body = JSON.stringify(BODY);
    const running = service.send({
      method: 'POST',
      holdBody: true,
      headers: { 'content-length': String(body.length), expect: '100-continue' },
    });
    await waitFor(() => running.interim.includes(100), 'the head had arrived');
    service.kill('SIGTERM');
    await waitFor(async () => (await service.get('/readyz')).status === 503, 'readyz said 503');
    running.connection.socket.write(body);
    expect((await running.end()).status).toBe(200);
    expect(running.header('connection')).toBe('close');
    expect(await service.exit()).toEqual({ code: 0, signal: null });
  });

  it('requests that stand behind another one on their connection are answered too', async () => {
    const up = await upstreamOf();
    const service = await ServiceProcess.listening({ config: configFor(up.url) });
    const hold = gate();
    // The second answer is there before the end is asked for; the others are not.
    const held: Script = async (_r, answer) => {
      await hold.opened;
      await answer.json(200, completion());
    };
    up.next(held, (_r, answer) => answer.json(200, completion()), held);
    const first = service.send({ body: BODY });
    await waitFor(() => up.requests.length === 1, 'the first was sent');
    const behind = [1, 2].map(() => first.connection.send({ body: BODY }));
    await waitFor(() => up.requests.length === 3, 'those behind it were sent');
    service.kill('SIGTERM');
    await waitFor(async () => (await service.get('/readyz')).status === 503, 'readyz said 503');
    hold.open();
    const answers = await Promise.all([first, ...behind].map((answer) => answer.end()));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
    expect(answers.map((answer) => answer.header('connection'))).toEqual([
      expect.not.stringMatching('close'),
      expect.not.stringMatching('close'),
      'close',
    ]);
    expect(await service.exit()).toEqual({ code: 0, signal: null });
  });

  it('at once where nothing runs, kept connections notwithstanding', async () => {
    const up = await upstreamOf();
    const service = await ServiceProcess.listening({ config: configFor(up.url) });
    const kept = service.send({ body: BODY });
    await kept.end();
    service.kill('SIGTERM');
    expect(await service.exit()).toEqual({ code: 0, signal: null });
  });

  it('what is left after the grace is told and aborted, exit code 0', async () => {
    const up = await upstreamOf();
    const service = await ServiceProcess.listening({
      config: configFor(up.url, { shutdown_grace: 'PT0.3S' }),
    });
    up.next(async (_r, answer) => {
      await answer.sseHead();
      await answer.write(delta('begin'));
    });
    const running = await service.send({ body: { ...BODY, stream: true } }).saw('begin');
    service.kill('SIGTERM');
    await running.end();
    expect(running.events.at(-1)?.json).toMatchObject({
      error: {
        code: 'upstream_stream_interrupted',
        message: 'The gateway is shutting down and ended this answer; what came is incomplete.',
      },
    });
    expect(running.text).not.toContain('[DONE]');
    expect(await service.exit()).toEqual({ code: 0, signal: null });
    await up.last.closed;
    const summary = service.lines.find(({ msg }) => msg.includes(' done result='));
    expect(summary?.msg).toMatch(/done result=net_err status=200 .* \(cut short: shutting down\)$/);
    expect(summary?.level).toBe(40);
  });

  it('a client that reads nothing does not prolong the grace, and nobody says that it left', async () => {
    const up = await upstreamOf();
    const service = await ServiceProcess.listening({ config: configFor(up.url, { shutdown_grace: 'PT1S' }) });
    up.next(async (_r, answer) => {
      await answer.sseHead();
      for (let i = 0; i < 4000 && !answer.socket.destroyed; i++)
        await answer.write(delta('x'.repeat(16_384)));
    });
    const deaf = service.send({ body: { ...BODY, stream: true } });
    await deaf.head();
    deaf.connection.socket.pause();
    service.kill('SIGTERM');
    expect(await service.exit()).toEqual({ code: 0, signal: null });
    const summaries = service.lines.filter(({ msg }) => msg.includes(' done result='));
    expect(summaries.map(({ msg }) => /result=\w+/.exec(msg)?.[0])).toEqual(['result=net_err']);
    deaf.connection.close();
  });

  it('a request whose body stands still does not hold the end, one whose body goes on is served', async () => {
    const up = await upstreamOf();
    const service = await ServiceProcess.listening({
      config: configFor(up.url, { shutdown_grace: 'PT10M' }),
    });
    const body = JSON.stringify(BODY);
    const upload = () =>
      service.send({
        method: 'POST',
        holdBody: true,
        headers: { 'content-length': String(body.length), expect: '100-continue' },
      });
    const [standing, silent, going] = [upload(), upload(), upload()];
    for (const { interim } of [standing, silent, going])
      await waitFor(() => interim.includes(100), 'the head had arrived');
    standing.connection.socket.write(body.slice(0, 4));
    service.kill('SIGTERM');
    let sent = 0;
    const typing = setInterval(() => going.connection.socket.write(body.charAt(sent++)), 100);
    onTestFinished(() => clearInterval(typing));
    for (const refused of [standing, silent]) {
      expect((await refused.end()).status).toBe(503);
      expect(refused.json).toMatchObject({ error: { code: 'shutting_down' } });
      expect(refused.header('connection')).toBe('close');
      expect(refused.ending).toBe('complete');
      if (!refused.connection.socket.closed)
        await new Promise((resolve) => refused.connection.socket.once('close', resolve));
    }
    clearInterval(typing);
    going.connection.socket.write(body.slice(sent));
    expect((await going.end()).status).toBe(200);
    expect(await service.exit()).toEqual({ code: 0, signal: null });
    expect(up.requests).toHaveLength(1);
  });

  it('a request whose body stands still is refused after the grace', async () => {
    const up = await upstreamOf();
    const service = await ServiceProcess.listening({
      config: configFor(up.url, { shutdown_grace: 'PT0.3S' }),
    });
    const running = service.send({
      method: 'POST',
      holdBody: true,
      headers: { 'content-length': '15', expect: '100-continue' },
    });
    await waitFor(() => running.interim.includes(100), 'the head had arrived');
    running.connection.socket.write('{"mode');
    service.kill('SIGTERM');
    await running.end();
    expect(running.status).toBe(503);
    expect(running.json).toMatchObject({ error: { code: 'shutting_down' } });
    expect(await service.exit()).toEqual({ code: 0, signal: null });
    expect(up.requests).toEqual([]);
  });

  it.each([
    ['SIGTERM', {}],
    ['SIGINT', {}],
    // As npm would start it where there is no terminal whose Ctrl-C could come twice.
    ['SIGINT', { npm_lifecycle_event: 'start' }],
  ] as const)('a second %s ends at once, exit code 1 (%o)', async (signal, environment) => {
    const up = await upstreamOf();
    const service = await ServiceProcess.listening({ config: configFor(up.url), environment });
    up.next(() => {});
    const running = service.send({ body: BODY });
    await up.chat(0);
    service.kill(signal);
    await waitFor(() => service.stdout.includes(`${signal}, draining`), 'it drained');
    service.kill(signal);
    expect(await service.exit()).toEqual({ code: 1, signal: null });
    await running.end();
  });
});

describe('whatever a client or a provider does', () => {
  it('the process goes on', async () => {
    const up = await upstreamOf();
    const service = await ServiceProcess.listening({ config: configFor(up.url, { body_limit: '1MiB' }) });
    const hold = gate();
    up.next(async (_r, answer) => {
      await answer.sseHead();
      await answer.write(delta('begin'));
      await hold.opened;
      await answer.end(DONE);
    });
    const running = await service.send({ body: { ...BODY, stream: true } }).saw('begin');
    for (const bytes of [
      '\0\0\0',
      'GET',
      'POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n',
      'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
      `GET /${'x'.repeat(100_000)} HTTP/1.1\r\n`,
    ]) {
      const answer = service.send({ method: 'GET', path: '/healthz' });
      await answer.end();
      answer.connection.socket.write(bytes);
      answer.connection.socket.end();
    }
    for (const script of ['reset', 'destroy'] as const) {
      up.next((_r, answer) => answer[script]());
      await service.send({ body: BODY }).end();
    }
    hold.open();
    expect((await running.end()).text.endsWith(DONE)).toBe(true);
    expect(service.exited).toBe(false);
  });

  it('a closed stdout ends nothing', async () => {
    const up = await upstreamOf();
    const service = await ServiceProcess.listening({
      config: configFor(up.url),
      environment: { LOG_LEVEL: 'debug' },
    });
    service.child.stdout?.destroy();
    service.child.stderr?.destroy();
    for (let i = 0; i < 20; i++) expect((await service.send({ body: BODY }).end()).status).toBe(200);
    service.kill('SIGTERM');
    expect(await service.exit()).toEqual({ code: 0, signal: null });
  });

  it('a log that nobody reads blocks no request', async () => {
    const up = await upstreamOf();
    const service = await ServiceProcess.listening({
      config: configFor(up.url),
      environment: { LOG_LEVEL: 'debug' },
    });
    service.child.stdout?.pause();
    const connection = service.send({ body: BODY });
    await connection.end();
    for (let i = 0; i < 1500; i++) {
      const answer = await connection.connection.send({ body: BODY }).end();
      expect(answer.status).toBe(200);
    }
    service.kill('SIGTERM');
    const exited = new Promise((resolve) => service.child.once('exit', resolve));
    expect(await exited).toBe(0);
    service.child.stdout?.resume();
  });
});
