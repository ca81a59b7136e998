import type { QuotaConfig } from '../config/gateway-config.js';
import { OutageShare } from './outage-share.js';
import type { QuotaHold } from './quota-hold.js';
import { calendarOf } from './window/calendar.js';
import { CalendarWindow } from './window/calendar-window.js';
import type { QuotaWindow, Use } from './window/quota-window.js';
import { SlidingWindow } from './window/sliding-window.js';

/** Others who count against the same quotas: what a request takes, it takes with their consent. */
export interface MeterPeers {
  /** At this moment it is they who decide. */
  readonly ok: boolean;
  /** All of these have something left, as far as is known here. Null = used up after all. Never rejects. */
  take(meters: readonly QuotaMeter[], tokens: number): QuotaHold | null | Promise<QuotaHold | null>;
}

/** Where a use was booked. */
export interface Booked {
  readonly window: QuotaWindow;
  readonly place: number;
}

/** While shares are all there is: they end as soon as the others can be asked. */
const SHARE_RETRY_MS = 1000;

/**
 * Counts one quota of one provider, key, upstream, entry or consumer; lives as long as that. A request counts in the
 * window in which it is sent; tokens are reserved while it runs, across a turn too, and count in the window in which
 * their number is known. Takes every request as long as anything is left, so the last one may go beyond the limit.
 *
 * Where others count too it is the copy by which candidates are looked at; who decides is its peers.
 */
export class QuotaMeter {
  #window: QuotaWindow;
  /** Null where nobody else counts. */
  peers: MeterPeers | null = null;
  #share: OutageShare | null = null;
  /** The others say that it is used up until then; wall clock. */
  #shutUntilMs = 0;
  #openings = 0;
  #reservedTokens = 0;
  #reservedElsewhere = 0;
  #version = 0;

  constructor(
    readonly quota: QuotaConfig,
    uses: readonly Use[],
    nowMs: number,
  ) {
    this.#window = windowOf(quota, uses, nowMs);
  }

  /** Begins again with what was used before this process. */
  restore(uses: readonly Use[], nowMs: number): void {
    this.#window = windowOf(this.quota, uses, nowMs);
  }

  /** Grows with each change of what is kept. */
  get version(): number {
    return this.#version;
  }

  /** What is neither used nor reserved; ≤ 0 = exhausted. */
  remaining(nowMs: number): number {
    const room = this.quota.limit - this.#window.used(nowMs);
    if (this.#share === null) return room - this.#reserved;
    return this.#share.remaining(room, this.#reservedTokens, nowMs);
  }

  /** 0 = open. Where only reservations close it, until the window turns: it may open sooner. */
  opensInMs(nowMs: number): number {
    const opensInMs = this.#window.opensInMs(this.quota.limit - this.#reserved, nowMs);
    if (this.#share === null) return Math.max(opensInMs, this.#shutUntilMs - nowMs);
    if (this.remaining(nowMs) > 0) return 0;
    if (opensInMs > 0) return opensInMs;
    return this.peers?.ok === true ? 0 : SHARE_RETRY_MS;
  }

  /** Time until nothing of what is used now counts any more. */
  turnsInMs(nowMs: number): number {
    return this.#window.turnsInMs(nowMs);
  }

  /** Before a request is sent that may use so many tokens. */
  reserve(tokens: number, nowMs: number): QuotaHold {
    if (this.quota.unit === 'requests') return new RequestHold(this, this.book(1, nowMs));
    this.hold(tokens);
    return new TokenHold(this, tokens);
  }

  /** What is used now, and what is reserved as if it were used: a process that is killed forgets nothing. */
  uses(nowMs: number): Use[] {
    const shared = this.#share?.used.uses(nowMs) ?? [];
    const uses = [...this.#window.uses(nowMs), ...shared];
    return this.#reservedTokens > 0 ? [...uses, [nowMs, this.#reservedTokens]] : uses;
  }

  // ---- what holds do

  /** Counts what was used. */
  book(amount: number, nowMs: number): Booked {
    this.#version++;
    const window = this.#share?.used ?? this.#window;
    return { window, place: window.book(amount, nowMs) };
  }

  /** False where that is not known any more. */
  takeBack({ place, window }: Booked, amount: number, nowMs: number): boolean {
    if (window !== this.#window && window !== this.#share?.used) return false;
    this.#version++;
    this.#opened();
    window.takeBack(amount, place, nowMs);
    return true;
  }

  /** Reserves; less than 0 = has ended. */
  hold(tokens: number): void {
    this.#version++;
    if (tokens < 0) this.#opened();
    this.#reservedTokens += tokens;
  }

  /** What the requests of this process have reserved. */
  get held(): number {
    return this.#reservedTokens;
  }

  // ---- what others do

  /** Others have used so much more; not while this replica lives on its share, for they say it all when that ends. */
  adopt(amount: number, nowMs: number): void {
    if (this.#share !== null) return;
    this.#version++;
    if (amount < 0) this.#opened();
    this.#window.book(amount, nowMs);
  }

  /** What all others together have reserved. */
  reservedElsewhere(tokens: number): void {
    if (tokens < this.#reservedElsewhere) this.#opened();
    this.#reservedElsewhere = tokens;
  }

  /** How often something was given back. */
  get openings(): number {
    return this.#openings;
  }

  /** They say that nothing is left for that long, if nothing is given back. */
  shut(ms: number, nowMs: number): void {
    this.#shutUntilMs = nowMs + ms;
  }

  /** Nobody can be asked. Whoever lives on a share already keeps it: what is left was shared out once. */
  alone(replicas: number, nowMs: number): void {
    const atLoss = { own: this.#reservedTokens, all: this.#reserved };
    this.#share ??= new OutageShare(windowOf(this.quota, [], nowMs), atLoss, replicas);
    this.#shutUntilMs = 0;
  }

  /** It lives on a share. */
  get isAlone(): boolean {
    return this.#share !== null;
  }

  /** What all have used before, as far as that is known here, oldest first. */
  usedBefore(nowMs: number): Use[] {
    return this.#window.uses(nowMs);
  }

  /** What all have used, this replica too: the share is over. */
  rejoin(uses: readonly Use[], nowMs: number): void {
    this.#version++;
    this.#share = null;
    this.#shutUntilMs = 0;
    this.restore(uses, nowMs);
  }

  #opened(): void {
    this.#openings++;
    this.#shutUntilMs = 0;
  }

  get #reserved(): number {
    return this.#reservedTokens + this.#reservedElsewhere;
  }
}

function windowOf({ per, window }: QuotaConfig, uses: readonly Use[], nowMs: number): QuotaWindow {
  if (window === 'sliding') return new SlidingWindow(per.ms, uses, nowMs);
  return new CalendarWindow(calendarOf(per), uses, nowMs);
}

class TokenHold implements QuotaHold {
  #open = true;

  constructor(
    private readonly meter: QuotaMeter,
    private readonly reserved: number,
  ) {}

  settle(tokens: number, nowMs: number): void {
    if (!this.#open) return;
    this.#open = false;
    this.meter.hold(-this.reserved);
    if (tokens > 0) this.meter.book(tokens, nowMs);
  }

  giveBack(nowMs: number): void {
    this.settle(0, nowMs);
  }
}

/** The request counts from the moment it was reserved, and only ceases to where it was not sent. */
class RequestHold implements QuotaHold {
  #open = true;

  constructor(
    private readonly meter: QuotaMeter,
    private readonly booked: Booked,
  ) {}

  settle(): void {
    this.#open = false;
  }

  giveBack(nowMs: number): void {
    if (this.#open) this.meter.takeBack(this.booked, 1, nowMs);
    this.#open = false;
  }
}
