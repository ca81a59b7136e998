import { onTestFinished } from 'vitest';
import { delta, DONE, finish } from './answers.js';
import { ServiceProcess } from './process.js';
import { RedisServer } from './redis-server.js';
import { ScriptedUpstream } from './scripted-upstream.js';
import { type Gate, gate } from './wait-for.js';

export interface FleetOptions {
  readonly count: number;
  readonly onError?: string;
  readonly upstream?: object;
  readonly model?: object;
}

/** Several processes with one file, one Redis and one provider whose upstream `u` has one slot. Lives for one test. */
export class Fleet {
  private constructor(
    readonly redis: RedisServer,
    readonly provider: ScriptedUpstream,
    readonly replicas: readonly ServiceProcess[],
  ) {}

  static async start({ count, model, onError, upstream }: FleetOptions): Promise<Fleet> {
    const redis = await RedisServer.start();
    onTestFinished(() => redis.kill());
    const provider = await ScriptedUpstream.start();
    onTestFinished(() => provider.stop());
    const config = {
      server: { host: '127.0.0.1', port: 0 },
      state: { store: 'redis', url: redis.url, on_error: onError ?? 'local' },
      providers: [{ id: 'p', url: provider.url }],
      upstreams: [{ id: 'u', provider: 'p', model: 'real', max_concurrency: 1, ...upstream }],
      models: [
        { name: 'now', upstreams: ['u'] },
        { name: 'm', upstreams: ['u'], queue: { size: 100, wait: 'PT1M' }, ...model },
      ],
    };
    const replicas = await Promise.all(
      Array.from({ length: count }, () =>
        ServiceProcess.listening({ config, environment: { LOG_FORMAT: 'json' } }),
      ),
    );
    return new Fleet(redis, provider, replicas);
  }

  /** A request by way of one replica; `m` waits, `now` does not. */
  ask(replica: number, model: 'm' | 'now' = 'm', text = 'hi') {
    const body = { model, stream: true, messages: [{ role: 'user', content: text }] };
    return (this.replicas[replica] as ServiceProcess).send({ body });
  }

  async metric(replica: number, name: string): Promise<number> {
    const { text } = await (this.replicas[replica] as ServiceProcess).get('/metrics');
    return Number(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, 'm').exec(text)?.[1]);
  }

  logged(replica: number, text: string): boolean {
    return (this.replicas[replica] as ServiceProcess).stdout.includes(text);
  }
}

/** The next request runs until the gate opens. */
export function hold(provider: ScriptedUpstream): Gate {
  const held = gate();
  provider.next(async (_request, answer) => {
    await answer.sseHead();
    await answer.write(delta('begun'));
    await held.opened;
    await answer.write(delta('ended') + finish() + DONE);
    await answer.end();
  });
  return held;
}
