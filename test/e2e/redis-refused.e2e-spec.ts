import { expect, it, onTestFinished } from 'vitest';
import { ServiceProcess } from '../support/process.js';
import { describeWithRedis, RedisServer } from '../support/redis-server.js';
import { waitFor } from '../support/wait-for.js';

const PASSWORD = 'a-password-for-tests';

describeWithRedis('a Redis that lets nobody in', () => {
  it.each([
    ['a wrong password', ':not-the-password@', 'it refuses the user or password of state.url'],
    ['no password', '', 'it wants a password in state.url'],
  ])('is told as that: %s', async (_, userinfo, words) => {
    const redis = await RedisServer.start(['--requirepass', PASSWORD]);
    onTestFinished(() => redis.kill());
    const service = await ServiceProcess.listening({
      config: {
        server: { host: '127.0.0.1', port: 0 },
        providers: [{ id: 'p', url: 'http://127.0.0.1:9/v1' }],
        upstreams: [{ id: 'u', provider: 'p', model: 'real' }],
        models: [{ name: 'm', upstreams: ['u'] }],
        state: { store: 'redis', url: `redis://${userinfo}127.0.0.1:${redis.port}` },
      },
    });
    await waitFor(() => service.stdout.includes(words), 'the log says why');
    expect(service.stdout).not.toContain('not-the-password');
  });
});
