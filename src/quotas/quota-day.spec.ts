import { claimsWith } from '../../test/support/slot-rooms.js';
import { describe, expect, it } from 'vitest';
import { ManualWallClock } from '../../test/support/manual-wall-clock.js';
import { parseDuration } from '../common/time/duration.js';
import type { QuotaConfig } from '../config/gateway-config.js';
import type { Claimable } from '../upstreams/concurrency/concurrency.service.js';
import { SlotPool } from '../upstreams/concurrency/slot-pool.js';
import type { Upstream } from '../upstreams/upstream.js';
import { QuotaMeter } from './quota-meter.js';
import { QuotaSet } from './quota-set.js';
import type { QuotaTicket } from './quota-ticket.js';
import { calendarOf } from './window/calendar.js';

const DAY_MS = 86_400_000;
/** A leap day's eve: the traffic runs across two turns of the day and one of the month. */
const START = Date.UTC(2028, 1, 28, 12);

function quota(unit: QuotaConfig['unit'], limit: number, text: string, sliding = false): QuotaConfig {
  const per = { text, ms: parseDuration(text) ?? 0 };
  return { unit, limit, per, window: sliding ? 'sliding' : 'calendar' };
}

const KEYS: readonly (readonly QuotaConfig[])[] = [
  [quota('requests', 200, 'P1D')],
  [quota('requests', 2, 'PT1M', true), quota('tokens', 15_000, 'PT1H')],
  [quota('tokens', 60_000, 'P1D')],
  [quota('requests', 15, 'PT1H'), quota('tokens', 300_000, 'P1M')],
  [quota('tokens', 6_000, 'PT10M', true)],
  [quota('requests', 1, 'PT30S'), quota('requests', 300, 'P1W')],
];

/** What a provider would write down about a request to one of the keys. */
interface Entry {
  readonly sentAt: number;
  readonly reserved: number;
  /** Infinity while it runs. */
  endedAt: number;
  tokens: number;
}

/** Counts by itself, from the list of all that happened. */
class Ledger {
  readonly entries: Entry[] = [];

  constructor(readonly quotas: readonly QuotaConfig[]) {}

  /** What counts for this quota now; a sliding window may take `slack` longer to forget. */
  used({ unit, per, window }: QuotaConfig, nowMs: number, slack = 0): number {
    const fromMs = window === 'sliding' ? nowMs - per.ms * (1 + slack) : calendarOf(per)(nowMs).startMs - 0.5;
    let used = 0;
    for (let i = this.entries.length - 1; i >= 0; i--) {
      const entry = this.entries[i] as Entry;
      if (unit === 'requests' && entry.sentAt > fromMs) used++;
      if (unit === 'tokens' && entry.endedAt <= nowMs && entry.endedAt > fromMs) used += entry.tokens;
    }
    return used;
  }

  reserved({ unit }: QuotaConfig): number {
    if (unit === 'requests') return 0;
    return this.entries.reduce(
      (sum, { endedAt, reserved }) => sum + (endedAt === Infinity ? reserved : 0),
      0,
    );
  }
}

/** Mulberry32: the same day for the same seed. */
function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

interface Running {
  readonly endsAt: number;
  readonly entry: Entry;
  readonly key: number;
  readonly ticket: QuotaTicket;
  readonly free: () => void;
}

function live(seed: number) {
  const random = randomOf(seed);
  const clock = new ManualWallClock(START);
  const ledgers = KEYS.map((quotas) => new Ledger(quotas));
  const candidates = KEYS.map((quotas): Claimable & { readonly set: QuotaSet } => {
    const meters = quotas.map((one) => new QuotaMeter(one, [], clock.ms));
    const slots = new SlotPool(4);
    const set = new QuotaSet(meters, clock.now);
    const upstream = { slots, restingMs: () => 0 } as unknown as Upstream;
    return { upstream, entry: { tier: 1, spill: null }, gates: [set], set };
  });
  const service = claimsWith({ now: () => clock.ms - START });
  const running: Running[] = [];
  const seen = { served: 0, refused: 0, givenBack: 0, overshoot: 0, opened: 0 };

  const endDue = () => {
    running.sort((a, b) => a.endsAt - b.endsAt);
    while (running.length > 0 && (running[0] as Running).endsAt <= clock.ms) {
      const { endsAt, entry, free, key, ticket } = running.shift() as Running;
      const nowMs = clock.ms;
      clock.ms = endsAt;
      if (random() < 0.05) {
        ticket.giveBack();
        const { entries } = ledgers[key] as Ledger;
        entries.splice(entries.indexOf(entry), 1);
        seen.givenBack++;
      } else {
        entry.tokens = Math.ceil(entry.reserved * random());
        entry.endedAt = endsAt;
        ticket.settle(entry.tokens);
        seen.served++;
      }
      free();
      clock.ms = nowMs;
    }
  };

  const checkMeters = () => {
    for (const [key, { set }] of candidates.entries()) {
      const ledger = ledgers[key] as Ledger;
      for (const meter of set.meters) {
        const one = meter.quota;
        const left = meter.remaining(clock.ms);
        const reserved = ledger.reserved(one);
        const most = one.limit - ledger.used(one, clock.ms) - reserved;
        const least = one.limit - ledger.used(one, clock.ms, 1 / 120) - reserved;
        expect(left).toBeLessThanOrEqual(most);
        expect(left).toBeGreaterThanOrEqual(least);
        if (one.unit === 'requests') expect(most).toBeGreaterThanOrEqual(0);
        const largest = Math.max(0, ...ledger.entries.map((entry) => entry.reserved));
        expect(ledger.used(one, clock.ms)).toBeLessThanOrEqual(one.limit + largest);
        seen.overshoot = Math.max(seen.overshoot, -most / Math.max(1, largest));
      }
    }
  };

  while (clock.ms < START + 1.1 * DAY_MS) {
    // Rush hours and quiet ones.
    clock.ms += Math.ceil(-Math.log(1 - random()) * (random() < 0.7 ? 4_000 : 120_000));
    endDue();
    const claim = service.claim(candidates, null);
    if (claim === null) {
      seen.refused++;
      const refusal = service.refusal(candidates);
      // Whoever is not full is used up, by the ledger too.
      for (const [key, { set, upstream }] of candidates.entries()) {
        if (!upstream.slots.free) continue;
        const ledger = ledgers[key] as Ledger;
        const exhausted = ledger.quotas.some(
          (one) => ledger.used(one, clock.ms, 1 / 120) + ledger.reserved(one) >= one.limit,
        );
        expect(exhausted).toBe(true);
        expect(set.closedMs()).toBeGreaterThan(0);
      }
      if (refusal.allClosedBy === 'quota' && running.length === 0) {
        // The time that a client is told is the time when it is served.
        clock.ms += Math.ceil(refusal.soonestMs) - 1;
        expect(service.claim(candidates, null)).toBeNull();
        clock.ms += 1;
        const again = service.claim(candidates, null);
        expect(again).not.toBeNull();
        again?.lease.release();
        seen.opened++;
      }
      continue;
    }
    const key = candidates.indexOf(claim.candidate);
    const ledger = ledgers[key] as Ledger;
    // No call is wasted: the provider would take it.
    for (const one of ledger.quotas) {
      expect(ledger.used(one, clock.ms) + ledger.reserved(one)).toBeLessThan(one.limit);
    }
    const reserved = 200 + Math.floor(random() * 2_000);
    const ticket = claim.candidate.set.reserve(reserved);
    if (ticket === null) throw new Error('a candidate that was open could not be reserved');
    const entry: Entry = { sentAt: clock.ms, reserved, endedAt: Infinity, tokens: 0 };
    ledger.entries.push(entry);
    const endsAt = clock.ms + 200 + Math.floor(random() * 40_000);
    running.push({ endsAt, entry, key, ticket, free: () => claim.lease.release() });
    if (random() < 0.05) checkMeters();
  }
  clock.ms += 60_000;
  endDue();
  checkMeters();
  return seen;
}

describe('a day of traffic over six keys with limits', () => {
  it.each([1, 2, 3, 4, 5])('wastes no call, and refuses none that could be served (seed %d)', (seed) => {
    const seen = live(seed);
    expect(seen.served).toBeGreaterThan(2_000);
    expect(seen.refused).toBeGreaterThan(50);
    expect(seen.givenBack).toBeGreaterThan(50);
    expect(seen.overshoot).toBeLessThanOrEqual(1);
  });

  it('meets the moments that it is about', () => {
    const seen = [6, 7, 8].map(live);
    expect(Math.max(...seen.map(({ opened }) => opened))).toBeGreaterThan(0);
    expect(Math.max(...seen.map(({ overshoot }) => overshoot))).toBeGreaterThan(0);
  });
});
