import { type Clock, timerDelay } from '../common/time/clock.js';
import type { GatewayExchange } from './gateway-exchange.js';

/** How a wait for a plugin ended: its hook is done, the exchange was given up, or the time was over. */
export type StageEnd = 'done' | 'given_up' | 'late';

/**
 * Waits for a hook of a plugin, as long as the exchange lives and no longer than to `dueAt` (monotonic; Infinity = no limit).
 * Rejects as the hook does. What is not waited for any more may still fail: nobody is left to hear it.
 */
export async function stageEnd(
  waiting: PromiseLike<unknown>,
  exchange: GatewayExchange,
  dueAt: number,
  clock: Clock,
): Promise<StageEnd> {
  const done = Promise.resolve(waiting).then((): StageEnd => 'done');
  done.catch(() => {});
  if (exchange.givenUp !== null) return 'given_up';
  let timer: NodeJS.Timeout | null = null;
  const abandoned = new Promise<StageEnd>((resolve) => {
    // Named first: see the trap in AttemptRun.
    const givenUp = () => resolve('given_up');
    exchange.onGivenUp = givenUp;
    if (dueAt === Infinity) return;
    const look = () => {
      const leftMs = dueAt - clock.now();
      if (leftMs <= 0) resolve('late');
      else timer = setTimeout(look, timerDelay(leftMs));
    };
    timer = setTimeout(look, timerDelay(dueAt - clock.now()));
  });
  try {
    return await Promise.race([done, abandoned]);
  } finally {
    exchange.onGivenUp = null;
    if (timer !== null) clearTimeout(timer);
  }
}
