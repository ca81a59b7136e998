import type { INestApplication } from '@nestjs/common';
import { RunningExchanges } from './gateway/running-exchanges.js';
import { OpenRequests } from './http/open-requests.js';
import { ServiceState } from './http/service-state.js';
import { ConcurrencyService } from './upstreams/concurrency/concurrency.service.js';

/** After the grace: time for the last words to reach the clients. */
const LAST_WORDS_MS = 2_000;

/**
 * Ends the service (spec 01 §10): new work is refused while the listener stays open, running exchanges finish within
 * the grace, those left are told that they were cut, then everything is closed.
 */
export async function shutDown(app: INestApplication, graceMs: number): Promise<void> {
  app.get(ServiceState).drain();
  app.get(ConcurrencyService).close();
  const open = app.get(OpenRequests);
  if (!(await open.idle(graceMs))) {
    open.giveUpUploads();
    app.get(RunningExchanges).giveUpAll();
    await open.idle(LAST_WORDS_MS);
  }
  await app.close();
}
