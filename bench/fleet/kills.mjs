// SIGKILL of the replica that has the slot, in the middle of an exchange; started again while its lease still stands.
import { setTimeout as sleep } from 'node:timers/promises';

const PATIENCE_MS = 60_000;
const RESTART_AFTER_MS = 2000;
const BETWEEN_MS = 3000;

export class Kills {
  /** From each kill to the next exchange, of whichever replica. */
  timesMs = [];

  constructor(random, arrivals, replicas) {
    this.random = random;
    this.arrivals = arrivals;
    this.replicas = replicas;
  }

  async run(times, tell) {
    for (let i = 0; i < times; i++) {
      await sleep(BETWEEN_MS);
      const victim = this.random.pick(this.replicas);
      const exchange = await this.arrivals.running(
        ({ sender }) => sender === victim.name,
        i % 2 === 0,
        PATIENCE_MS,
      );
      if (exchange === null) {
        this.timesMs.push(Infinity);
        continue;
      }
      const killedAt = performance.now();
      const next = this.arrivals.first(() => true, PATIENCE_MS);
      await victim.kill();
      await sleep(RESTART_AFTER_MS);
      await victim.start();
      const used = await next;
      const tookMs = used === null ? Infinity : used.beganAt - killedAt;
      this.timesMs.push(tookMs);
      tell(
        `killed ${victim.name} during ${exchange.plan.kind}: the slot was used again after ${tookMs.toFixed(0)} ms`,
      );
    }
    await sleep(BETWEEN_MS);
  }
}
