// Clients of all replicas at once, each with a replica of its own; their requests meet at one slot.
import { setTimeout as sleep } from 'node:timers/promises';
import { BEHAVIOURS } from '../failures/one-slot.mjs';
import { Client } from '../soak/client.mjs';

export class Crowd {
  behaviours = {};
  sent = 0;
  /** What a killed process took with it. */
  lost = 0;

  constructor(random, verdict, replicas, clientsPerReplica) {
    this.random = random;
    this.verdict = verdict;
    this.replicas = replicas;
    this.clientsPerReplica = clientsPerReplica;
  }

  /** Until `enough`; every request that was begun has ended then. */
  async run(enough) {
    const homes = this.replicas.flatMap((replica) =>
      Array.from({ length: this.clientsPerReplica }, () => replica),
    );
    await Promise.all(homes.map((home) => this.#client(home, enough)));
  }

  async #client(home, enough) {
    let deaths = home.deaths;
    const check = (answer, wish) => {
      if (answer.ending === 'complete' || home.deaths === deaths) return this.verdict.check(answer, wish);
      if (answer.ending !== 'left') this.lost++;
    };
    const how = { models: ['one'], behaviours: BEHAVIOURS, sender: home.name };
    const client = new Client(this.random, home.port, check, how);
    while (!enough()) {
      if (!home.up) {
        await sleep(20);
        continue;
      }
      ({ deaths } = home);
      client.port = home.port;
      // Not in one step: others add to it meanwhile.
      const count = await client.once();
      this.sent += count;
    }
    client.close();
    for (const [name, count] of Object.entries(client.counts))
      this.behaviours[name] = (this.behaviours[name] ?? 0) + count;
  }
}
