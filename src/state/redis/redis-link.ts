import { createClient, ErrorReply } from '@redis/client';
import { StateUnavailable } from '../state-unavailable.js';
import { type RedisInfo, redisInfoOf } from './redis-info.js';
import { isRefusal, shortReason } from './refusals.js';
import { loadScripts, type Script, type ScriptName } from './scripts.js';

export interface LinkOptions {
  readonly url: string;
  /** Of one answer. */
  readonly timeoutMs: number;
}

export interface LinkListener {
  connected(): void;
  /** See {@link StoreListener.lost}. */
  lost(reason: string, unseenMs: number): void;
  message(channel: string, text: string): void;
  /** An answer came, but nobody waited for it any more. */
  late?(): void;
}

/** What this link is for: known once it is known how the keys are named. */
export interface LinkNames {
  /** The last one is this replica's own. */
  readonly channels: readonly string[];
  /** A key that may be written at any time. */
  readonly probe: string;
}

type Reply = string | number | null | readonly Reply[];

type Client = ReturnType<typeof newClient>;

const CONNECT_MS = 750;
const CONNECT_ANSWERS = 3;
const FIRST_RETRY_MS = 50;
const LAST_RETRY_MS = 250;
/** A connection that is of use for so long was no matter of luck. */
const STEADY_MS = 5000;
const WATCH_MS = 250;
/** Whether it still takes writes is looked at that often. */
const PROBE_MS = 1000;
/** An answer that is out that long: whatever holds the connection open, nobody is there. */
const HUNG_MS = 1000;

/**
 * Whoever hears of a trouble by a probe hears of it so much later than whoever was the first: a broken connection is seen by all at
 * once, a Redis that refuses or is frozen is not.
 */
const UNSEEN_MS = PROBE_MS + 2 * WATCH_MS;
/** Where one of these fails, for whatever reason, leases run out. */
const VITAL: ReadonlySet<ScriptName> = new Set(['probe', 'enrol', 'renew']);

/** For all that has to be said and answered until a connection can be used. */
function connectMs(timeoutMs: number): number {
  return Math.max(CONNECT_MS, CONNECT_ANSWERS * timeoutMs);
}

/** Whoever lost a Redis has spoken to it again that long after it is back, at the latest: also where nothing refused its tries. */
export function longestReturnMs(timeoutMs: number): number {
  return connectMs(timeoutMs) + LAST_RETRY_MS + timeoutMs;
}

/**
 * The one connection to Redis: commands and messages on the same socket, so that they come in the order in which things
 * happened. Connects again for ever; what is asked meanwhile is refused at once and never sent later. Owns its timers.
 */
export class RedisLink {
  readonly #scripts = loadScripts();
  readonly #unanswered = new Set<{ readonly sentAt: number }>();
  #client: Client | null = null;
  /** Null while it is not usable. */
  #ready: Client | null = null;
  #retry: NodeJS.Timeout | null = null;
  #retries = 0;
  #watch: NodeJS.Timeout | null = null;
  #probedAt = 0;
  #readyAt = 0;
  #names: LinkNames = { channels: [], probe: '' };
  #closed = false;

  constructor(
    private readonly options: LinkOptions,
    private readonly names: (info: RedisInfo) => LinkNames,
    private readonly listener: LinkListener,
  ) {}

  get connected(): boolean {
    return this.#ready !== null;
  }

  open(): void {
    this.#watch = setInterval(() => this.#look(), WATCH_MS);
    this.#watch.unref();
    void this.#connect();
  }

  close(): void {
    this.#closed = true;
    if (this.#watch !== null) clearInterval(this.#watch);
    if (this.#retry !== null) clearTimeout(this.#retry);
    const client = this.#client;
    this.#client = null;
    this.#ready = null;
    client?.destroy();
  }

  /** `late`: what to do with an answer that nobody waits for any more. */
  run(
    name: ScriptName,
    keys: readonly string[],
    args: readonly string[],
    late?: (reply: Reply) => void,
  ): Promise<Reply> {
    const script = this.#scripts.get(name) as Script;
    const rest = [String(keys.length), ...keys, ...args];
    return this.#send(
      (client) =>
        client.sendCommand<Reply>(['EVALSHA', script.sha1, ...rest]).catch((error: unknown) => {
          if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error;
          return client.sendCommand<Reply>(['EVAL', script.text, ...rest]);
        }),
      this.#ready,
      VITAL.has(name),
      late,
    );
  }

  command(args: readonly string[]): Promise<Reply> {
    return this.#send((client) => client.sendCommand<Reply>([...args]), this.#ready);
  }

  #send(
    send: (client: Client) => Promise<Reply>,
    using: Client | null,
    vital = false,
    late?: (reply: Reply) => void,
  ): Promise<Reply> {
    if (using === null) return Promise.reject(new StateUnavailable('not connected'));
    const pending = { sentAt: performance.now() };
    this.#unanswered.add(pending);
    return new Promise((resolve, reject) => {
      let waiting = true;
      const timer = setTimeout(() => {
        // Trap: after a pause of this process timers ring before the answers that have come meanwhile are read.
        setImmediate(() => {
          if (!waiting) return;
          waiting = false;
          reject(new StateUnavailable(`no answer in ${this.options.timeoutMs} ms`));
        });
      }, this.options.timeoutMs);
      const answered = () => {
        clearTimeout(timer);
        this.#unanswered.delete(pending);
        const inTime = waiting;
        waiting = false;
        return inTime;
      };
      send(using).then(
        (reply) => {
          // Not before: a Redis that takes connections and then refuses is not asked the faster for that.
          if (vital && performance.now() - this.#readyAt > STEADY_MS) this.#retries = 0;
          if (answered()) {
            resolve(reply);
            return;
          }
          this.listener.late?.();
          late?.(reply);
        },
        (error: unknown) => {
          const inTime = answered();
          this.#judge(using, error, vital);
          if (inTime) reject(new StateUnavailable(shortReason(error)));
        },
      );
    });
  }

  /** A Redis that refuses is no better than one that is not there. What fails for one request alone is only that one's trouble. */
  #judge(client: Client, error: unknown, vital: boolean): void {
    if (client !== this.#ready || !(error instanceof ErrorReply)) return;
    if (vital || isRefusal(error)) this.#drop(client, shortReason(error), UNSEEN_MS);
    else this.#probe();
  }

  /** If it fails the connection is dropped. */
  #probe(): void {
    this.#probedAt = performance.now();
    const { channels, probe } = this.#names;
    this.run('probe', [probe], [channels.at(-1) as string]).catch(() => {});
  }

  async #connect(): Promise<void> {
    const limitMs = connectMs(this.options.timeoutMs);
    const client = newClient(this.options.url, limitMs);
    this.#client = client;
    // Trap: a frozen Redis lets its kernel accept connections; what is said on them is answered late, or never.
    const late = setTimeout(() => this.#drop(client, 'it does not answer'), limitMs);
    client.on('error', (error: unknown) => this.#drop(client, shortReason(error)));
    client.on('end', () => this.#drop(client, 'the connection was closed'));
    try {
      await client.connect();
      await this.#prepare(client);
    } catch (error) {
      this.#drop(client, shortReason(error));
      return;
    } finally {
      clearTimeout(late);
    }
    if (this.#client !== client || !client.isReady) return;
    this.#ready = client;
    this.#readyAt = this.#probedAt = performance.now();
    this.listener.connected();
  }

  /** All that must work before it is of any use. */
  async #prepare(client: Client): Promise<void> {
    const say = (...args: readonly string[]) => this.#send((to) => to.sendCommand<Reply>([...args]), client);
    this.#names = this.names(redisInfoOf(String(await say('INFO'))));
    const { channels, probe } = this.#names;
    const own = channels.at(-1) as string;
    // Answered in turn, so the first that is refused is told; outside of a script Redis says which command it is.
    await Promise.all([
      ...Array.from(this.#scripts.values(), ({ text }) => say('SCRIPT', 'LOAD', text)),
      say('SET', probe, '1', 'PX', '60000'),
      say('PUBLISH', own, '{}'),
      say('EVALSHA', (this.#scripts.get('probe') as Script).sha1, '1', probe, own),
    ]);
    await client.subscribe([...channels], (text: string, channel: string) =>
      this.listener.message(channel, text),
    );
  }

  /** `unseenMs`: see {@link StoreListener.lost}. */
  #drop(client: Client, reason: string, unseenMs = 0): void {
    if (this.#client !== client) return;
    this.#client = null;
    this.#ready = null;
    if (client.isOpen) client.destroy();
    this.#unanswered.clear();
    if (this.#closed) return;
    const delayMs = Math.min(LAST_RETRY_MS, FIRST_RETRY_MS * 2 ** this.#retries++);
    this.#retry = setTimeout(() => void this.#connect(), delayMs);
    this.#retry.unref();
    this.listener.lost(reason, unseenMs);
  }

  /** The connection is of no use: whatever it is that does not work on it. */
  giveUp(reason: string): void {
    if (this.#client !== null) this.#drop(this.#client, reason);
  }

  #look(): void {
    const client = this.#ready;
    if (client === null) return;
    const now = performance.now();
    // After a pause of this process the answers are read first.
    setImmediate(() => {
      const [oldest] = this.#unanswered;
      if (oldest !== undefined && now - oldest.sentAt > Math.max(HUNG_MS, 2 * this.options.timeoutMs))
        this.#drop(client, 'it does not answer', UNSEEN_MS);
    });
    if (now - this.#probedAt > PROBE_MS) this.#probe();
  }
}

function newClient(url: string, connectTimeout: number) {
  return createClient({
    url,
    RESP: 3,
    disableOfflineQueue: true,
    disableClientInfo: true,
    maintNotifications: 'disabled',
    // Its own timers would be one more for each command.
    commandOptions: { timeout: undefined },
    socket: { reconnectStrategy: false, connectTimeout },
  });
}
