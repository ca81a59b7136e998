import { expect, it } from 'vitest';
import { delta } from '../support/answers.js';
import { describeWithRedis } from '../support/redis-server.js';
import { Fleet } from '../support/replicas.js';
import type { ServiceProcess } from '../support/process.js';
import { gate, within } from '../support/wait-for.js';

const REPLICAS = 4;
const REQUESTS = 15;
const LEASE_AND_MORE_MS = 40_000;

describeWithRedis('four replicas on one slot', () => {
  it(
    'never run two at once: not under load, and not when one of them is killed in the middle of a stream',
    { timeout: 90_000 },
    async () => {
      const fleet = await Fleet.start({ count: REPLICAS });
      const { provider, replicas } = fleet;
      const clients = replicas.flatMap((_, replica) => [replica, replica]);
      await Promise.all(
        clients.map(async (replica) => {
          for (let i = 0; i < REQUESTS; i++) expect((await fleet.ask(replica).end()).status).toBe(200);
        }),
      );
      expect(provider.chats).toHaveLength(clients.length * REQUESTS);
      expect(provider.mostAtOnce).toBe(1);

      const never = gate();
      provider.next(async (_request, answer) => {
        await answer.sseHead();
        await answer.write(delta('begun'));
        await never.opened;
      });
      const dying = replicas[3] as ServiceProcess;
      const cut = fleet.ask(3);
      await cut.saw('begun');
      const waiting = [0, 1, 2].map((replica) => fleet.ask(replica));
      dying.kill('SIGKILL');
      await dying.exit();
      for (const answer of waiting) {
        await within(answer.head(), 'the slot of the dead replica', LEASE_AND_MORE_MS);
        expect((await answer.end()).status).toBe(200);
      }
      expect(cut.ending).not.toBe('complete');
      expect(provider.mostAtOnce).toBe(1);
      expect(await fleet.metric(0, 'llm_proxy_upstream_inflight')).toBe(0);
      never.open();
    },
  );
});
