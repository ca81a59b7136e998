import type { INestApplication } from '@nestjs/common';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { RunningExchanges } from './gateway/running-exchanges.js';
import type { EdgeContext } from './http/edge-context.js';
import { OpenRequests } from './http/open-requests.js';
import { ServiceState } from './http/service-state.js';
import { shutDown } from './shutdown.js';
import { ConcurrencyService } from './upstreams/concurrency/concurrency.service.js';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function service() {
  const open = new OpenRequests();
  const state = new ServiceState();
  const happened: [what: string, atMs: number][] = [];
  let lineClosed = false;
  const begin = Date.now();
  const note = (what: string) => void happened.push([what, Date.now() - begin]);
  const running = { giveUpAll: () => note('gave up') };
  const parts = new Map<unknown, unknown>([
    [OpenRequests, open],
    [ServiceState, state],
    [RunningExchanges, running],
    [ConcurrencyService, { close: () => void (lineClosed = true) }],
  ]);
  const app = { get: (type: unknown) => parts.get(type), close: async () => note('closed') };
  return { app: app as unknown as INestApplication, open, state, happened, lineClosed: () => lineClosed };
}

const request = (): EdgeContext => ({ reader: null, response: null, headers: [] }) as unknown as EdgeContext;

describe('shutDown', () => {
  it.each([
    [30_000, 29_500],
    [1000, 900],
    [300, 250],
    [50, 0],
  ])('fits into a grace of %i ms when a client never takes its last words', async (graceMs, gaveUpMs) => {
    const { app, open, state, happened, lineClosed } = service();
    const waiting = request();
    open.enter(waiting);
    const ended = shutDown(app, graceMs);
    expect(waiting.headers).toEqual(['connection', 'close']);
    expect([state.draining, lineClosed()]).toEqual([true, true]);
    await vi.runAllTimersAsync();
    await ended;
    expect(happened).toEqual([
      ['gave up', gaveUpMs],
      ['closed', graceMs],
    ]);
  });

  it('ends at once where nothing runs, and as soon as the last one has ended', async () => {
    const idle = service();
    await shutDown(idle.app, 30_000);
    expect(idle.happened).toEqual([['closed', 0]]);

    const busy = service();
    const one = request();
    busy.open.enter(one);
    const ended = shutDown(busy.app, 30_000);
    await vi.advanceTimersByTimeAsync(1234);
    busy.open.leave(one);
    await ended;
    expect(busy.happened).toEqual([['closed', 1234]]);
  });
});
