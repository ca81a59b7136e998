import type { INestApplication } from '@nestjs/common';
import { DiscoveryService } from '@nestjs/core';
import { printable } from './common/text/mask.js';
import { type Clock, monotonicClock, timerDelay } from './common/time/clock.js';
import { RunningExchanges } from './gateway/running-exchanges.js';
import { OpenRequests } from './http/open-requests.js';
import { ServiceState } from './http/service-state.js';
import { GatewayLog } from './observability/log/gateway-log.js';
import { boundShutdownHooks } from './shutdown-hooks.js';
import { ConcurrencyService } from './upstreams/concurrency/concurrency.service.js';

/** The end of the grace belongs to the last words: a tenth of it, within these bounds. */
const LAST_WORDS_MS = 500;
const SHORTEST_LAST_WORDS_MS = 50;
/** What plugins may take for closing where less than this is left of the grace. */
const CLOSING_MS = 2000;
/** Where others have taken that time, each further hook may take this long, and all of them together the second. */
const SHORT_CLOSING_MS = 250;
const AFTER_CLOSING_MS = 1000;

/**
 * Ends the service: new work is refused while the listener stays open, running exchanges finish within
 * the grace, bodies that stand still are not waited for, those left are told that they were cut, then everything is closed. The grace is the whole budget: a client
 * that reads nothing does not prolong it, and a plugin that does not close in what is left of it only by seconds.
 */
export async function shutDown(
  app: INestApplication,
  graceMs: number,
  clock: Clock = monotonicClock,
): Promise<void> {
  const endsAt = clock.now() + graceMs;
  app.get(ServiceState).drain();
  app.get(ConcurrencyService).close();
  const open = app.get(OpenRequests);
  open.announceEnd();
  const lastWordsMs = Math.min(LAST_WORDS_MS, Math.max(SHORTEST_LAST_WORDS_MS, graceMs / 10));
  const watchNoMore = open.refuseStandingUploads();
  const isIdle = await open.idle(Math.max(0, graceMs - lastWordsMs));
  watchNoMore();
  if (!isIdle) {
    open.giveUpUploads();
    app.get(RunningExchanges).giveUpAll();
    await open.idle(lastWordsMs);
  }
  await close(app, Math.max(endsAt, clock.now() + CLOSING_MS), clock);
}

/** No plugin holds it up: what does not come to an end is told, and left behind. */
async function close(app: INestApplication, closedBy: number, clock: Clock): Promise<void> {
  const log = app.get(GatewayLog);
  const discovery = app.get(DiscoveryService);
  const all = [...discovery.getProviders(), ...discovery.getControllers()];
  boundShutdownHooks(
    all.map(({ instance }) => instance as unknown),
    {
      leftMs: () => timerDelay(Math.max(closedBy - clock.now(), SHORT_CLOSING_MS)),
      onFailed: (owner, hook, error) => log.closingFailed(owner, hook, error),
      onLate: (owner, hook, afterMs) =>
        log.warn(
          `server: ${hook} of ${printable(owner)} had not ended after ${afterMs}ms, it is not waited for`,
        ),
    },
  );
  const limitMs = timerDelay(closedBy - clock.now() + AFTER_CLOSING_MS);
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(() => {
      log.warn(`server: not all was closed after ${limitMs}ms, it is not waited for`);
      resolve();
    }, limitMs);
  });
  await Promise.race([app.close(), late]);
  clearTimeout(timer);
}
