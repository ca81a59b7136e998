import { randomBytes, randomUUID } from 'node:crypto';
import type {
  ClaimAnswer,
  ClaimAsk,
  EnrolAnswer,
  HistoryBounds,
  RenewAnswer,
  SharedStore,
  StoreListener,
  WaitNote,
} from '../shared-store.js';
import type { ReserveAnswer, Sum, SumAsk, SumChange, SumMemory, SumStates } from '../shared-sums.js';
import type { Pool, PooledLease, RestBooking, RestState } from '../shared-types.js';
import { StateUnavailable } from '../state-unavailable.js';
import { type RedisInfo, redisInfoOf } from './redis-info.js';
import { RedisKeys } from './redis-keys.js';
import { longestReturnMs, RedisLink } from './redis-link.js';
import { eventOf, excessesOf, numberOf, restStateOf } from './replies.js';
import { reserveAnswerOf, sumStatesOf, toldSum, undone } from './sum-words.js';

export interface RedisStoreOptions {
  readonly url: string;
  readonly prefix: string;
  readonly timeoutMs: number;
  readonly leaseMs: number;
  /** How long a newcomer in an empty Redis lets others come first. */
  readonly newcomerMs: number;
}

type Reply = Awaited<ReturnType<RedisLink['run']>>;

/** Gives key numbers to scripts, the same for the same key. */
class KeyList {
  readonly keys: string[] = [];
  readonly #numbers = new Map<string, number>();

  constructor(...first: readonly string[]) {
    for (const key of first) this.number(key);
  }

  number(key: string): number {
    let number = this.#numbers.get(key);
    if (number === undefined) {
      number = this.keys.push(key);
      this.#numbers.set(key, number);
    }
    return number;
  }
}

/** A slow Redis is told no more often. */
const TELL_LATE_MS = 60_000;

/** {@link SharedStore} on Redis or Valkey: each method is one script, so that no decision is ever made in two steps. */
export class RedisStore implements SharedStore {
  readonly replica = randomBytes(6).toString('hex');
  readonly #link: RedisLink;
  #keys: RedisKeys;
  #listener: StoreListener | null = null;
  /** How often this replica has told what it holds: one that arrives late must not undo a later one. */
  #tellings = 0;
  /** Of the Redis in which this replica was last enrolled; '' = never. */
  #epoch = '';
  readonly #warned = new Set<string>();
  #toldLateAt = -Infinity;

  /** Others that knew an earlier Redis speak before a newcomer gets anything of this one. */
  static newcomerMs(timeoutMs: number): number {
    return longestReturnMs(timeoutMs);
  }

  constructor(private readonly options: RedisStoreOptions) {
    this.#keys = new RedisKeys(options.prefix, false);
    const names = (info: RedisInfo) => {
      const keys = new RedisKeys(options.prefix, info.clustered);
      this.#keys = keys;
      this.#warn(info);
      return { channels: [keys.channel, `${keys.channel}:${this.replica}`], probe: keys.probe };
    };
    this.#link = new RedisLink(options, names, {
      connected: () => this.#listener?.connected(),
      lost: (reason, unseenMs) => this.#listener?.lost(reason, unseenMs),
      late: () => this.#late(),
      message: (_channel, text) => {
        const event = eventOf(text, this.replica);
        if (event !== null) this.#listener?.happened(event);
      },
    });
  }

  get connected(): boolean {
    return this.#link.connected;
  }

  open(listener: StoreListener): void {
    this.#listener = listener;
    this.#link.open();
  }

  close(): Promise<void> {
    this.#listener = null;
    this.#link.close();
    return Promise.resolve();
  }

  async claim(lease: string, asks: readonly ClaimAsk[], waits: readonly WaitNote[]): Promise<ClaimAnswer> {
    const keys = this.#keys;
    const list = this.#common();
    const ask = {
      c: asks.map(({ pools, rest }) => ({
        p: pools.map(({ held, pool }) => [list.number(keys.pool(pool.name)), pool.limit, held, pool.name]),
        r: rest === null ? 0 : list.number(keys.rest(rest)[1]),
      })),
      w: waits.map(({ pool, priority, waitedMs }) => [
        list.number(keys.waits(pool)),
        priority,
        Math.round(waitedMs),
      ]),
    };
    const args = [
      this.replica,
      lease,
      String(this.options.leaseMs),
      JSON.stringify(ask),
      keys.channel,
      this.#epoch,
    ];
    const late = (reply: Reply) => {
      const granted = asks[numberOf(reply, 0) - 1];
      // Nobody waits for it any more; if this fails too it lapses.
      if (granted !== undefined)
        this.release({ id: lease, pools: granted.pools }, 0).catch(ignoreUnavailable);
    };
    const reply = await this.#link.run('claim', list.keys, args, late);
    if (numberOf(reply, 2) < 0) throw this.#forgotten();
    const granted = numberOf(reply, 0);
    const lapseMs = numberOf(reply, 1);
    return {
      granted: granted === 0 ? null : granted - 1,
      lapseMs: lapseMs === 0 ? null : lapseMs,
      heldBackMs: numberOf(reply, 2),
    };
  }

  async release({ id, pools }: PooledLease, pauseMs: number): Promise<void> {
    const keys = this.#keys;
    const list = [
      keys.members,
      keys.excesses,
      ...pools.flatMap(({ pool: { name } }) => [keys.pool(name), keys.waits(name)]),
    ];
    await this.#link.run('release', list, [
      this.replica,
      id,
      String(pauseMs),
      String(this.options.leaseMs),
      keys.channel,
      JSON.stringify(pools.map(({ held, pool: { limit, name } }) => [limit, held, name])),
    ]);
  }

  async forget(pools: readonly Pool[]): Promise<void> {
    const keys = this.#keys;
    const list = pools.flatMap(({ name }) => [keys.waits(name), keys.pool(name)]);
    const told = JSON.stringify(pools.map(({ limit, name }) => [limit, name]));
    await this.#link.run('forget', list, [this.replica, keys.channel, told]);
  }

  async renew(leases: readonly PooledLease[]): Promise<RenewAnswer> {
    const list = this.#common();
    const args = [
      this.replica,
      String(this.options.leaseMs),
      this.#keys.channel,
      this.#leasesIn(list, leases),
      heldIn(leases),
    ];
    const reply = await this.#link.run('renew', list.keys, args);
    const [, , epoch, ...lost] = Array.isArray(reply) ? reply : [];
    if (epoch !== this.#epoch) throw this.#forgotten();
    return { replicas: numberOf(reply, 0), heldBackMs: numberOf(reply, 1), lost: lost.map(String) };
  }

  async enrol(leases: readonly PooledLease[], pools: readonly Pool[]): Promise<EnrolAnswer> {
    const list = this.#common();
    const told = this.#leasesIn(list, leases);
    const all = JSON.stringify(pools.map(({ name }) => list.number(this.#keys.pool(name))));
    // Each time: whoever answers at this address may be another one, or its data older than what this replica knows.
    const { before, history, run } = redisInfoOf(String(await this.#link.command(['INFO']))).identity;
    const tellings = String(list.number(this.#keys.tellings));
    const reply = await this.#link.run('enrol', list.keys, [
      this.replica,
      String(this.options.leaseMs),
      this.#keys.channel,
      told,
      all,
      this.#epoch,
      randomUUID(),
      String(this.options.newcomerMs),
      run,
      history,
      before,
      heldIn(leases),
      String(++this.#tellings),
      tellings,
    ]);
    const [epoch, , , ...fields] = Array.isArray(reply) ? reply : [];
    this.#epoch = String(epoch);
    return {
      heldBackMs: numberOf(reply, 1),
      replicas: numberOf(reply, 2),
      excesses: excessesOf(fields.map(String)).filter(({ replica }) => replica !== this.replica),
    };
  }

  async leave(): Promise<void> {
    const { channel, excesses, heldBack, members, rollCall } = this.#keys;
    await this.#link.run('leave', [rollCall, members, excesses, heldBack], [this.replica, channel]);
  }

  async failed(booking: RestBooking): Promise<RestState> {
    const { ageMs, askedMs, baseMs, capMs, name, trial } = booking;
    const numbers = [baseMs, capMs, askedMs, ageMs].map((ms) => String(Math.max(0, Math.round(ms))));
    const args = [...numbers, trial ? '1' : '0', this.#keys.channel, name];
    return restStateOf(name, await this.#link.run('fail', this.#keys.rest(name), args));
  }

  async succeeded(name: string): Promise<void> {
    await this.#link.run('succeed', this.#keys.rest(name), [this.#keys.channel, name]);
  }

  async rests(names: readonly string[]): Promise<readonly RestState[]> {
    if (names.length === 0) return [];
    const keys = names.flatMap((name) => this.#keys.rest(name));
    const reply = await this.#link.run('rests', keys, []);
    return names.map((name, i) => restStateOf(name, Array.isArray(reply) ? (reply[i] as Reply) : null));
  }

  async hold(fact: string, ms: number): Promise<void> {
    const args = [String(Math.round(ms)), this.#keys.channel, fact, this.replica];
    await this.#link.run('hold', [this.#keys.fact(fact)], args);
  }

  async held(facts: readonly string[]): Promise<readonly number[]> {
    if (facts.length === 0) return [];
    const keys = facts.map((fact) => this.#keys.fact(fact));
    const reply = await this.#link.run('held', keys, []);
    return facts.map((_, i) => numberOf(reply, i));
  }

  async reserve(asks: readonly SumAsk[]): Promise<ReserveAnswer> {
    const { channel, epoch, heldBack, members } = this.#keys;
    const told = asks.map(({ limit, reserved, sum, used }) => ({
      ...toldSum(sum),
      l: limit,
      u: used,
      h: reserved,
    }));
    const late = (reply: Reply) => {
      const answer = reserveAnswerOf(reply);
      // Nobody knows of it any more; if this fails too it stays counted.
      if (answer?.kind === 'granted') this.settle(undone(asks, answer.parts)).catch(ignoreUnavailable);
    };
    const reply = await this.#link.run(
      'reserve',
      [heldBack, members, epoch, ...this.#sumKeys(asks)],
      [this.replica, String(this.options.leaseMs), channel, this.#epoch, JSON.stringify(told)],
      late,
    );
    const answer = reserveAnswerOf(reply);
    if (answer === null) throw this.#forgotten();
    return answer;
  }

  async settle(changes: readonly SumChange[]): Promise<void> {
    const told = changes.map(({ part, reserved, sum, used }) => ({
      ...toldSum(sum),
      p: part ?? 0,
      u: used,
      h: reserved,
    }));
    const args = [this.replica, this.#keys.channel, JSON.stringify(told)];
    await this.#link.run('settle', this.#sumKeys(changes), args);
  }

  async resume(memories: readonly SumMemory[]): Promise<void> {
    if (memories.length === 0) return;
    const told = memories.map(({ known, reserved, sum, untold }) => ({
      ...toldSum(sum),
      k: known,
      u: untold,
      h: reserved,
    }));
    const args = [this.replica, this.#keys.channel, JSON.stringify(told)];
    await this.#link.run('resume', this.#sumKeys(memories), args);
  }

  async sums(sums: readonly Sum[], mark: number): Promise<SumStates> {
    const { channel, heldBack, members } = this.#keys;
    const keys = [heldBack, members, ...this.#sumKeys(sums.map((sum) => ({ sum })))];
    const told = JSON.stringify(sums.map(toldSum));
    const args = [this.replica, String(this.options.leaseMs), channel, told, String(mark)];
    return sumStatesOf(await this.#link.run('sums', keys, args), sums.length);
  }

  async recall(prefixes: readonly string[], id: string, bounds: HistoryBounds): Promise<string> {
    const { prefixesOf, sessions } = this.#keys;
    const keys = [sessions, ...prefixes.map((prefix) => this.#keys.prefix(prefix))];
    const limits = [bounds.keptMs, bounds.histories, bounds.prefixesPerHistory].map(String);
    return String(await this.#link.run('recall', keys, [id, ...limits, prefixesOf]));
  }

  async tell(topic: string, text: string): Promise<void> {
    const event = JSON.stringify({ t: 'told', r: this.replica, k: topic, x: text });
    await this.#link.command(['PUBLISH', this.#keys.channel, event]);
  }

  async lead(task: string, forMs: number): Promise<boolean> {
    const px = String(Math.max(1, Math.round(forMs)));
    const reply = await this.#link.command(['SET', this.#keys.lead(task), this.replica, 'NX', 'PX', px]);
    return reply === 'OK';
  }

  /** Once for each trouble, in the life of this process. */
  #warn({ evicts, identity }: RedisInfo): void {
    const troubles = [
      evicts === null
        ? null
        : `it may evict keys (maxmemory-policy ${evicts}): limits and quotas are forgotten with them; set noeviction`,
      identity.run === ''
        ? 'it does not tell its run_id: each new connection may be one to older data, and nothing limited is given out for a while after it'
        : null,
    ];
    for (const trouble of troubles) {
      if (trouble === null || this.#warned.has(trouble)) continue;
      this.#warned.add(trouble);
      this.#listener?.warned?.(trouble);
    }
  }

  /** Trap: it is not away then, so nothing else would tell why what has a limit counts as busy. */
  #late(): void {
    const now = performance.now();
    if (now - this.#toldLateAt < TELL_LATE_MS) return;
    this.#toldLateAt = now;
    const trouble = `it answers later than state.timeout (${this.options.timeoutMs} ms): what has a limit counts as busy meanwhile`;
    this.#listener?.warned?.(trouble);
  }

  /** Its memory was lost without a break of the connection, or somebody wiped it. */
  #forgotten(): StateUnavailable {
    const reason = 'its content was lost';
    this.#link.giveUp(reason);
    return new StateUnavailable(reason);
  }

  #sumKeys(of: readonly { readonly sum: Sum }[]): string[] {
    return of.flatMap(({ sum: { name } }) => [this.#keys.sum(name), this.#keys.reserved(name)]);
  }

  #common(): KeyList {
    const { epoch, excesses, heldBack, members, origin, rollCall } = this.#keys;
    return new KeyList(heldBack, rollCall, members, excesses, epoch, origin);
  }

  #leasesIn(list: KeyList, leases: readonly PooledLease[]): string {
    const told = leases.map(({ id, pools }) => [
      id,
      pools.map(({ pool }) => list.number(this.#keys.pool(pool.name))),
    ]);
    return JSON.stringify(told);
  }
}

/** How many of these leases are in each pool, as the scripts are told. */
function heldIn(leases: readonly PooledLease[]): string {
  const told = new Map<string, [limit: number, name: string, held: number]>();
  for (const { pools } of leases) {
    for (const { pool } of pools) {
      const one = told.get(pool.name) ?? [pool.limit, pool.name, 0];
      one[2]++;
      told.set(pool.name, one);
    }
  }
  return JSON.stringify([...told.values()]);
}

function ignoreUnavailable(error: unknown): void {
  if (!(error instanceof StateUnavailable)) throw error;
}
