// A crowd at an upstream with one slot: clients that leave, answers that break or stall. Never two exchanges at once.
import { Client } from '../soak/client.mjs';
import { FakeProvider } from '../soak/provider.mjs';
import { Verdict } from '../soak/verdict.mjs';

/** Resets and stalls far more often than under the soak. */
export const PLANS = {
  well: 60,
  resetOnHead: 4,
  resetAfterBody: 4,
  resetAfterHead: 4,
  closeOnBody: 3,
  status503: 3,
  stallBeforeHead: 0.4,
  stallAfterHead: 0.4,
  stallMidway: 0.4,
  malformedChunk: 0.5,
  drip: 2,
  midFin: 5,
  midReset: 6,
  closeAfter: 3,
  trailingBytes: 1,
};
export const BEHAVIOURS = {
  normal: 56,
  pipelined: 4,
  slow: 4,
  leaveSending: 8,
  leaveWaiting: 14,
  leaveReading: 14,
};
const CLIENTS = 12;

export class OneSlot {
  behaviours = {};
  sent = 0;

  constructor(random, providerRandom) {
    this.random = random;
    this.provider = new FakeProvider(providerRandom, { one: 1 }, PLANS);
    this.verdict = new Verdict(this.provider);
  }

  async run(port, requests, tell) {
    const how = { models: ['one'], behaviours: BEHAVIOURS };
    const check = (answer, wish) => this.verdict.check(answer, wish);
    const clients = Array.from({ length: CLIENTS }, () => new Client(this.random, port, check, how));
    const ticking = setInterval(() => tell(`one slot: ${this.sent} of ${requests} requests`), 10_000);
    await Promise.all(
      clients.map(async (client) => {
        while (this.sent < requests) {
          const count = await client.once();
          this.sent += count;
        }
        client.close();
      }),
    );
    clearInterval(ticking);
    for (const { counts } of clients) {
      for (const [name, count] of Object.entries(counts))
        this.behaviours[name] = (this.behaviours[name] ?? 0) + count;
    }
  }
}
