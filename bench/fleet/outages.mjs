// Redis goes away and comes back: stopped and started empty, and frozen for a while with all it knew.
import { setTimeout as sleep } from 'node:timers/promises';

const PATIENCE_MS = 60_000;
const BEFORE_MS = 3000;

export const OUTAGES = [
  { name: 'SIGTERM, empty again after 5 s', awayMs: 5000, empty: true },
  { name: 'SIGTERM, empty again at once', awayMs: 0, empty: true },
  {
    name: 'SIGTERM, empty again, one replica killed and started meanwhile',
    awayMs: 1000,
    empty: true,
    restarts: true,
  },
  { name: 'SIGSTOP for 3 s', awayMs: 3000, empty: false },
];

/** For replicas that use nothing limited without Redis: what they began before it went is all that may run. */
export const SHORT_OUTAGES = [OUTAGES[0], OUTAGES[3]];

export class Outages {
  results = [];

  constructor(random, redis, arrivals, replicas) {
    this.random = random;
    this.redis = redis;
    this.arrivals = arrivals;
    this.replicas = replicas;
  }

  async run(outages, tell) {
    for (const outage of outages) {
      await sleep(BEFORE_MS);
      // In the middle of an answer: somebody holds the slot when it goes.
      await this.arrivals.running(() => true, true, PATIENCE_MS);
      const result = await this.#one(outage);
      this.results.push(result);
      const seconds = (ms) => `${(ms / 1000).toFixed(2)} s`;
      tell(
        `${outage.name}: ${result.users} used the slot meanwhile; in other hands after ${seconds(result.firstMs)}, all ${seconds(result.allMs)}`,
      );
    }
    await sleep(BEFORE_MS);
  }

  async #one({ awayMs, empty, name, restarts = false }) {
    if (empty) await this.redis.down();
    else this.redis.freeze();
    const meanwhile = this.arrivals.watch();
    await sleep(awayMs);
    if (restarts) {
      const victim = this.random.pick(this.replicas);
      await victim.kill();
      await victim.start();
    }
    const users = meanwhile();
    if (empty) await this.redis.up();
    else this.redis.thaw();
    const backAt = performance.now();
    // Who had it meanwhile may have it still: that tells nothing of the return.
    const had = new Set(users);
    const first = this.arrivals.first(({ sender }) => had.add(sender).size > 1, PATIENCE_MS);
    const all = Promise.all(
      this.replicas.map((replica) =>
        this.arrivals.first(({ sender }) => sender === replica.name, PATIENCE_MS),
      ),
    );
    const since = (exchange) => (exchange === null ? Infinity : exchange.beganAt - backAt);
    const firstMs = since(await first);
    const allMs = Math.max(...(await all).map(since));
    return { name, empty, users: users.size, firstMs, allMs };
  }
}
