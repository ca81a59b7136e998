import { readFileSync } from 'node:fs';
import { expect, it, onTestFinished } from 'vitest';
import { ServiceProcess } from '../support/process.js';
import { describeWithRedis, RedisServer } from '../support/redis-server.js';
import { ScriptedUpstream } from '../support/scripted-upstream.js';
import { waitFor } from '../support/wait-for.js';

const PASSWORD = 'a-password-for-tests';

const serviceAt = (url: string, provider = 'http://127.0.0.1:9/v1') => {
  const limits = { max_concurrency: 1, quota: [{ requests: 5, per: 'P1D' }] };
  return ServiceProcess.listening({
    config: {
      server: { host: '127.0.0.1', port: 0 },
      providers: [
        { id: 'p', url: provider },
        { id: 'dead', url: 'http://127.0.0.1:9/v1' },
      ],
      upstreams: [
        { id: 'u', provider: 'p', model: 'real', ...limits },
        { id: 'd', provider: 'dead', model: 'real', ...limits },
      ],
      models: [{ name: 'm', upstreams: ['d', 'u'], affinity: 'session' }],
      state: { store: 'redis', url },
    },
  });
};

describeWithRedis('a Redis that lets nobody in', () => {
  it.each([
    ['a wrong password', ':not-the-password@', 'it refuses the user or password of state.url'],
    ['no password', '', 'it wants a password in state.url'],
  ])('is told as that: %s', async (_, userinfo, words) => {
    const redis = await RedisServer.start(['--requirepass', PASSWORD]);
    onTestFinished(() => redis.kill());
    const service = await serviceAt(`redis://${userinfo}127.0.0.1:${redis.port}`);
    await waitFor(() => service.stdout.includes(words), 'the log says why');
    expect(service.stdout).not.toContain('not-the-password');
  });

  it('is told as that: a database that it does not have', async () => {
    const redis = await RedisServer.start();
    onTestFinished(() => redis.kill());
    const service = await serviceAt(`${redis.url}/99`);
    await waitFor(
      () => service.stdout.includes('redis is gone (it has no database of the number in state.url)'),
      'the log says why',
    );
  });

  it('is content with the rights that the documentation names', async () => {
    const redis = await RedisServer.start();
    onTestFinished(() => redis.kill());
    const text = readFileSync(new URL('../../docs/scaling.md', import.meta.url), 'utf8');
    const line = /^ACL SETUSER llm-proxy .*$/m.exec(text)?.[0] ?? '';
    await redis.command(...line.split(' '));
    const provider = await ScriptedUpstream.start();
    onTestFinished(() => provider.stop());
    const service = await serviceAt(`redis://llm-proxy:password@127.0.0.1:${redis.port}`, provider.url);
    const body = { model: 'm', messages: [{ role: 'user', content: 'hi' }] };
    // Claims, takes of quotas, fails, rests, gives back and remembers.
    for (let n = 0; n < 2; n++) expect((await service.send({ body }).end()).status).toBe(200);
    const { text: metrics } = await service.get('/metrics');
    expect(metrics).toMatch(/^llm_proxy_state_degraded 0$/m);
    expect(service.stdout).not.toContain('redis is gone');
    const log = (await redis.command('ACL', 'LOG')) as unknown[];
    expect(log).toEqual([]);
  });
});
