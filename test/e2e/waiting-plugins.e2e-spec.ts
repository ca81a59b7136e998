import { describe, expect, it } from 'vitest';
import { withHooks } from '../support/plugin.js';
import type { Stage } from '../support/stage.js';
import { gate, waitFor } from '../support/wait-for.js';

const probing = { backoff: 'PT1M', probe_interval: 'PT0.03S', first_byte_timeout: 'PT0.1S' };

async function failedProbes(set: Stage): Promise<number> {
  return (await set.gateway.metrics()).sum('llm_proxy_probe_pings_total', { upstream: 'a', result: 'fail' });
}

describe('a plugin whose onAttempt never ends for a probe', () => {
  const never = gate();

  // FAULT: one such probe held the slot of the group for good: all of the group was busy for ever.
  it('keeps no slot of the group', async () => {
    const begun = gate();
    const set = await withHooks(
      { onAttempt: ({ probe }) => (probe ? (begun.open(), never.opened) : undefined) },
      {
        upstreams: 2,
        provider: { slot_group: 'g' },
        upstream: (index) => (index === 0 ? probing : {}),
        file: () => ({
          slot_groups: { g: 1 },
          models: [
            { name: 'm', upstreams: ['a'] },
            { name: 'n', upstreams: ['b'], queue: { wait: 'PT5S' } },
          ],
        }),
      },
    );
    set.a.next((_request, answer) => answer.error(503));
    await set.chat().end();
    await begun.opened;
    expect((await set.chat({ model: 'n' }).end()).status).toBe(200);
    const line = await set.gateway.logged('plugin test had not ended in onAttempt of a probe within 100ms');
    expect(line).toMatchObject({ level: 40, plugin: 'test', hook: 'onAttempt' });
    await waitFor(async () => (await failedProbes(set)) > 0, 'the probe was counted as a failed one');
    expect(set.a.probes).toEqual([]);
  });

  // FAULT: the upstream was never probed again, in later rests neither.
  it('is no reason not to probe again', async () => {
    let calls = 0;
    const signals: AbortSignal[] = [];
    const set = await withHooks(
      {
        onAttempt: ({ exchange, probe }) => {
          if (!probe) return undefined;
          signals.push(exchange.signal);
          return ++calls === 1 ? never.opened : undefined;
        },
      },
      { upstream: probing },
    );
    set.a.next((_request, answer) => answer.error(503));
    await set.chat().end();
    await set.gateway.logged('probe upstream=a ok, back in the pool');
    expect([calls, signals[0]?.aborted, await failedProbes(set)]).toEqual([2, true, 1]);
    expect((await set.gateway.metrics()).sum('llm_proxy_upstream_fail_streak')).toBe(0);
  });

  it('is called off with the rest', async () => {
    const signals: AbortSignal[] = [];
    const set = await withHooks(
      {
        onAttempt: ({ exchange, probe }) =>
          probe ? (signals.push(exchange.signal), never.opened) : undefined,
      },
      { upstream: { ...probing, backoff: { base: 'PT0.2S', cap: 'PT0.2S' }, first_byte_timeout: 'PT1M' } },
    );
    for (const rest of [1, 2]) {
      set.a.next((_request, answer) => answer.error(503));
      await set.chat().end();
      await waitFor(() => signals[rest - 1]?.aborted === true, `the probe of rest ${rest} was called off`);
    }
    expect(await failedProbes(set)).toBe(0);
  });
});
