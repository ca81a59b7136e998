import type { INestApplication } from '@nestjs/common';
import { RunningExchanges } from './gateway/running-exchanges.js';
import { OpenRequests } from './http/open-requests.js';
import { ServiceState } from './http/service-state.js';
import { ConcurrencyService } from './upstreams/concurrency/concurrency.service.js';

/** The end of the grace belongs to the last words: a tenth of it, within these bounds. */
const LAST_WORDS_MS = 500;
const SHORTEST_LAST_WORDS_MS = 50;

/**
 * Ends the service: new work is refused while the listener stays open, running exchanges finish within
 * the grace, those left are told that they were cut, then everything is closed. The grace is the whole budget: a client
 * that reads nothing does not prolong it.
 */
export async function shutDown(app: INestApplication, graceMs: number): Promise<void> {
  app.get(ServiceState).drain();
  app.get(ConcurrencyService).close();
  const open = app.get(OpenRequests);
  open.announceEnd();
  const lastWordsMs = Math.min(LAST_WORDS_MS, Math.max(SHORTEST_LAST_WORDS_MS, graceMs / 10));
  if (!(await open.idle(Math.max(0, graceMs - lastWordsMs)))) {
    open.giveUpUploads();
    app.get(RunningExchanges).giveUpAll();
    await open.idle(lastWordsMs);
  }
  await app.close();
}
