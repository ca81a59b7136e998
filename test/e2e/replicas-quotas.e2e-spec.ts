import { createServer, type AddressInfo } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { TestGateway } from '../support/gateway.js';
import { ServiceProcess } from '../support/process.js';
import type { RawAnswer } from '../support/raw-client.js';
import { describeWithRedis, RedisServer } from '../support/redis-server.js';
import { ScriptedUpstream } from '../support/scripted-upstream.js';
import { secretKey } from '../support/secret-watch.js';
import { waitFor } from '../support/wait-for.js';

/** Turns so seldom that no test meets it. */
const LONG = 'P360D';
const requests = (limit: number) => ({ quota: [{ requests: limit, per: LONG }] });

interface Parts {
  readonly providers?: object[];
  readonly provider?: object;
  readonly upstreams?: { readonly id: string; readonly [key: string]: unknown }[];
  readonly upstream?: object;
  readonly model?: object;
  readonly consumers?: object[];
  readonly key?: string;
}

/** One replica, as a process of its own or as a gateway in this one. */
interface Replica {
  send(headers: Record<string, string>): Promise<RawAnswer>;
  left(scope: string): Promise<number>;
  readonly process?: ServiceProcess;
}

const BODY = { model: 'm', messages: [{ role: 'user', content: 'hi' }] };

async function aProcess(config: object): Promise<Replica> {
  const process = await ServiceProcess.listening({ config, environment: { LOG_FORMAT: 'json' } });
  return {
    send: (headers) => process.send({ body: BODY, headers }).end(),
    left: async (scope) => {
      const { text } = await process.get('/metrics');
      return Number(
        new RegExp(`^llm_proxy_quota_remaining\\{scope="${scope}"[^}]*\\} (\\S+)$`, 'm').exec(text)?.[1],
      );
    },
    process,
  };
}

async function inHere(config: object): Promise<Replica> {
  const gateway = await TestGateway.start({ config });
  onTestFinished(() => gateway.close());
  return {
    send: (headers) => gateway.send({ body: BODY, headers }).end(),
    left: async (scope) => (await gateway.metrics()).sum('llm_proxy_quota_remaining', { scope }),
  };
}

/** Two replicas with one file, one Redis and one provider. */
async function pair(start: (config: object) => Promise<Replica>, parts: Parts) {
  const redis = await RedisServer.start();
  onTestFinished(() => redis.kill());
  const provider = await ScriptedUpstream.start();
  onTestFinished(() => provider.stop());
  const upstreams = [
    { id: 'u', provider: 'p', model: 'real', ...parts.upstream },
    ...(parts.upstreams ?? []),
  ];
  const config = {
    server: { host: '127.0.0.1', port: 0 },
    state: { store: 'redis', url: redis.url },
    providers: [{ id: 'p', url: provider.url, ...parts.provider }, ...(parts.providers ?? [])],
    upstreams,
    models: [{ name: 'm', upstreams: upstreams.map(({ id }) => id), ...parts.model }],
    ...(parts.consumers === undefined ? {} : { consumers: parts.consumers }),
  };
  const replicas = await Promise.all([start(config), start(config)]);
  const headers: Record<string, string> =
    parts.key === undefined ? {} : { authorization: `Bearer ${parts.key}` };
  const send = (replica: number) => (replicas[replica % 2] as Replica).send(headers);
  const crowd = async (count: number) => {
    const answers = await Promise.all(Array.from({ length: count }, (_, i) => send(i)));
    return {
      answers,
      served: answers.filter(({ status }) => status === 200),
      refused: answers.filter(({ status }) => status === 429),
    };
  };
  const left = (replica: number, scope: string) => (replicas[replica] as Replica).left(scope);
  const logged = (text: string) => replicas.every(({ process }) => process?.stdout.includes(text));
  return { crowd, left, logged, provider, redis, send };
}

describeWithRedis('quotas that two processes count', () => {
  it('let exactly three of eight at once in', async () => {
    const { crowd, left, provider, send } = await pair(aProcess, {
      upstream: requests(3),
    });
    const { refused, served } = await crowd(8);
    expect([served.length, refused.length, provider.chats.length]).toEqual([3, 5, 3]);
    for (const answer of refused) {
      expect(answer.json['error']).toMatchObject({ code: 'quota_exhausted' });
      expect(Number(answer.header('retry-after'))).toBeGreaterThan(60);
    }
    expect([await left(0, 'upstream'), await left(1, 'upstream')]).toEqual([0, 0]);
    expect((await send(1)).status).toBe(429);
  });

  it('send what the first has no quota for to the next, in the same request', async () => {
    const { crowd, provider } = await pair(inHere, {
      upstream: requests(2),
      upstreams: [{ id: 'v', provider: 'p', model: 'other' }],
      model: { max_attempts: 1 },
    });
    const { served } = await crowd(8);
    expect(served).toHaveLength(8);
    expect(provider.chats.filter(({ json }) => json['model'] === 'real')).toHaveLength(2);
  });

  it('count a provider and a model entry together, all or none', async () => {
    const { crowd, left, provider } = await pair(inHere, {
      provider: requests(5),
      model: { upstreams: [{ upstream: 'u', ...requests(2) }] },
    });
    expect((await crowd(6)).served).toHaveLength(2);
    expect(provider.chats).toHaveLength(2);
    for (const replica of [0, 1]) {
      await waitFor(async () => (await left(replica, 'provider')) === 3, 'it was heard of');
      expect(await left(replica, 'entry')).toBe(0);
    }
  });

  it('of keys: each key takes what it may, and who finds one used up goes on with the next', async () => {
    const keys = ['a', 'b'].map((id) => ({ id, value: secretKey(`key-${id}`), ...requests(2) }));
    const { crowd, provider } = await pair(inHere, { provider: { keys } });
    const { refused, served } = await crowd(8);
    expect([served.length, refused.length]).toEqual([4, 4]);
    const used = provider.chats.map((request) => request.header('authorization') ?? '');
    for (const { value } of keys) expect(used.filter((header) => header.endsWith(value))).toHaveLength(2);
  });

  it('give back what reached nobody, whichever replica had it', async () => {
    const { crowd, left } = await pair(inHere, {
      providers: [{ id: 'gone', url: `http://127.0.0.1:${await closedPort()}/v1` }],
      upstreams: [{ id: 'v', provider: 'gone', model: 'real', backoff: false, ...requests(3) }],
      model: { upstreams: ['v', 'u'] },
    });
    for (let i = 0; i < 3; i++) expect((await crowd(4)).served).toHaveLength(4);
    for (const replica of [0, 1])
      await waitFor(async () => (await left(replica, 'upstream')) === 3, 'nothing is counted');
  });

  it('count what failed at the provider', async () => {
    const { crowd, left, provider } = await pair(inHere, { upstream: { backoff: false, ...requests(3) } });
    provider.always((_request, answer) => answer.send(503, '{}'));
    const { answers } = await crowd(8);
    expect(provider.chats).toHaveLength(3);
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(5);
    expect(await left(0, 'upstream')).toBe(0);
  });

  it('of a consumer: its requests are as many as it may have, over all replicas', async () => {
    const key = secretKey('red');
    const consumers = [{ id: 'red', keys: [{ id: 'k', value: key }], ...requests(3) }];
    const { crowd, provider } = await pair(aProcess, { consumers, key });
    const { refused, served } = await crowd(8);
    expect([served.length, refused.length, provider.chats.length]).toEqual([3, 5, 3]);
    for (const { json } of refused)
      expect(json['error']).toMatchObject({
        code: 'quota_exhausted',
        message: expect.stringContaining("consumer's") as string,
      });
  });

  it('without their Redis: each has its even share of what is left, and no more', async () => {
    const { crowd, logged, provider, redis, send } = await pair(aProcess, { upstream: requests(6) });
    expect((await send(0)).status).toBe(200);
    await redis.kill();
    await waitFor(() => logged('state: redis is gone'), 'both noticed');
    // Five are left: two for each.
    const { refused, served } = await crowd(10);
    expect([served.length, refused.length]).toEqual([4, 6]);
    for (const answer of refused) expect(answer.header('retry-after')).toBe('1');
    await redis.up();
    await waitFor(() => logged('state: redis is back'), 'both are back');
    // While others may come first, shares are all there is.
    expect((await crowd(4)).served).toHaveLength(0);
    let last = 0;
    await waitFor(async () => (last += (await crowd(4)).served.length) > 0, 'they count together', 30_000);
    expect((await crowd(4)).refused).toHaveLength(4);
    expect(last).toBe(1);
    expect(provider.chats).toHaveLength(6);
  }, 60_000);
});

async function closedPort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
