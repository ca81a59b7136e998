import { createClient } from '@redis/client';
import { StateUnavailable } from '../state-unavailable.js';
import { loadScripts, type Script, type ScriptName } from './scripts.js';

export interface LinkOptions {
  readonly url: string;
  /** Of one answer. */
  readonly timeoutMs: number;
}

export interface LinkListener {
  connected(): void;
  lost(reason: string): void;
  message(channel: string, text: string): void;
}

type Reply = string | number | null | readonly Reply[];

type Client = ReturnType<typeof newClient>;

const CONNECT_MS = 750;
const CONNECT_ANSWERS = 3;
const FIRST_RETRY_MS = 50;
const LAST_RETRY_MS = 250;
const WATCH_MS = 250;
/** Without other traffic. */
const PING_MS = 1000;
/** An answer that is out that long: whatever holds the connection open, nobody is there. */
const HUNG_MS = 1000;

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
  #sentAt = 0;
  #closed = false;
  #clustered = false;

  constructor(
    private readonly options: LinkOptions,
    private readonly channels: (clustered: boolean) => readonly string[],
    private readonly listener: LinkListener,
  ) {}

  get connected(): boolean {
    return this.#ready !== null;
  }

  /** Whether keys must share a hash tag. Known once it was connected. */
  get clustered(): boolean {
    return this.#clustered;
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
      late,
    );
  }

  command(args: readonly string[]): Promise<Reply> {
    return this.#send((client) => client.sendCommand<Reply>([...args]));
  }

  #send(
    send: (client: Client) => Promise<Reply>,
    late?: (reply: Reply) => void,
    using = this.#ready,
  ): Promise<Reply> {
    if (using === null) return Promise.reject(new StateUnavailable('not connected'));
    const pending = { sentAt: performance.now() };
    this.#sentAt = pending.sentAt;
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
          if (answered()) resolve(reply);
          else late?.(reply);
        },
        (error: unknown) => {
          if (answered()) reject(new StateUnavailable(shortReason(error)));
        },
      );
    });
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
      const info = await this.#send((to) => to.sendCommand<Reply>(['INFO', 'cluster']), undefined, client);
      this.#clustered = String(info).includes('cluster_enabled:1');
      await Promise.all(
        Array.from(this.#scripts.values(), ({ text }) =>
          this.#send((to) => to.sendCommand<Reply>(['SCRIPT', 'LOAD', text]), undefined, client),
        ),
      );
      await client.subscribe([...this.channels(this.#clustered)], (text: string, channel: string) =>
        this.listener.message(channel, text),
      );
    } catch (error) {
      this.#drop(client, shortReason(error));
      return;
    } finally {
      clearTimeout(late);
    }
    if (this.#client !== client || !client.isReady) return;
    this.#ready = client;
    this.#retries = 0;
    this.listener.connected();
  }

  #drop(client: Client, reason: string): void {
    if (this.#client !== client) return;
    this.#client = null;
    this.#ready = null;
    if (client.isOpen) client.destroy();
    this.#unanswered.clear();
    if (this.#closed) return;
    const delayMs = Math.min(LAST_RETRY_MS, FIRST_RETRY_MS * 2 ** this.#retries++);
    this.#retry = setTimeout(() => void this.#connect(), delayMs);
    this.#retry.unref();
    this.listener.lost(reason);
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
        this.#drop(client, 'it does not answer');
    });
    if (now - this.#sentAt > PING_MS) this.command(['PING']).catch(() => {});
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

const REFUSED = 'it refuses the user or password of state.url';
/** What an operator can mend, in words. */
const REASONS: ReadonlyMap<string, string> = new Map([
  ['WRONGPASS', REFUSED],
  ['NOAUTH', 'it wants a password in state.url'],
  ['NOPERM', 'the user of state.url may not run the commands that are needed'],
]);

/** A code or the first words of Redis: neither holds an address or a secret. */
function shortReason(error: unknown): string {
  if (error instanceof StateUnavailable) return error.message;
  if (!(error instanceof Error)) return 'unknown error';
  const { code } = error as NodeJS.ErrnoException;
  if (typeof code === 'string') return code;
  const word = /^-?([A-Z]{3,20})\b/.exec(error.message)?.[1];
  return REASONS.get(word ?? '') ?? word ?? error.constructor.name;
}
