import { expect, it, onTestFinished } from 'vitest';
import { describeWithRedis } from '../support/redis-server.js';
import { Fleet, hold } from '../support/replicas.js';
import { ServiceProcess } from '../support/process.js';
import { ScriptedUpstream } from '../support/scripted-upstream.js';
import { waitFor } from '../support/wait-for.js';

describeWithRedis('replicas that must never share a slot', () => {
  it(
    'strict: what runs is cut before its slot can be another one’s, and nothing new begins',
    { timeout: 60_000 },
    async () => {
      const fleet = await Fleet.start({ count: 1, onError: 'strict' });
      const held = hold(fleet.provider);
      const running = fleet.ask(0);
      await running.saw('begun');
      await fleet.redis.kill();
      await waitFor(() => fleet.logged(0, 'state: redis is gone'), 'it noticed');
      expect((await fleet.ask(0, 'now').end()).json['error']).toMatchObject({ code: 'all_upstreams_busy' });
      await waitFor(() => running.ending !== null, 'the stream was cut', 20_000);
      expect(running.text).toContain('upstream_stream_interrupted');
      expect(running.text).not.toContain('[DONE]');
      held.open();
    },
  );

  it('a replica that never met Redis starts, and serves only what has no limit', async () => {
    const provider = await ScriptedUpstream.start();
    onTestFinished(() => provider.stop());
    const upstream = { provider: 'p', model: 'real' };
    const late = await ServiceProcess.listening({
      config: {
        server: { host: '127.0.0.1', port: 0 },
        // Nobody listens on port 1.
        state: { store: 'redis', url: 'redis://:hushhush@127.0.0.1:1' },
        providers: [{ id: 'p', url: provider.url }],
        upstreams: [
          { ...upstream, id: 'u', max_concurrency: 8 },
          { ...upstream, id: 'f' },
        ],
        models: [
          { name: 'limited', upstreams: ['u'] },
          { name: 'free', upstreams: ['f'] },
        ],
      },
      environment: { LOG_FORMAT: 'json' },
    });
    const ask = (model: string) =>
      late.send({ body: { model, messages: [{ role: 'user', content: 'hi' }] } });
    expect((await ask('limited').end()).json['error']).toMatchObject({ code: 'all_upstreams_busy' });
    expect((await ask('free').end()).status).toBe(200);
    expect(late.stdout).toContain('state: redis is gone');
    expect(late.stdout).not.toContain('hushhush');
  });
});
