import { describe, expect, it } from 'vitest';
import { completion, DONE, delta } from '../support/answers.js';
import type { RawAnswer } from '../support/raw-client.js';
import { MESSAGES, stage, type Stage } from '../support/stage.js';
import { gate, waitFor } from '../support/wait-for.js';

const one = { upstream: { max_concurrency: 1 } };

/** One request holds the only slot of `a` until the gate opens. */
async function occupied(set: Stage) {
  const hold = gate();
  set.a.next(async (_request, answer) => {
    await hold.opened;
    await answer.json(200, completion());
  });
  const holder = set.chat();
  await set.a.chat(0);
  return { holder, hold };
}

async function expectFree(set: Stage, id = 'a'): Promise<void> {
  await waitFor(async () => (await set.gateway.inflight(id)) === 0, `no slot of ${id} was taken`);
  expect((await set.chat().end()).status).toBe(200);
}

describe('slots', () => {
  it('overflow to the next upstream', async () => {
    const set = await stage({ upstreams: 2, ...one });
    const { holder, hold } = await occupied(set);
    const second = await set.chat().end();
    expect(second.header('x-llm-proxy-upstream')).toBe('b');
    expect(second.header('x-llm-proxy-attempts')).toBe('1');
    hold.open();
    expect((await holder.end()).header('x-llm-proxy-upstream')).toBe('a');
    expect((await set.chat().end()).header('x-llm-proxy-upstream')).toBe('a');
  });

  it('answer 503 all upstreams busy where all are full', async () => {
    const set = await stage(one);
    const { holder, hold } = await occupied(set);
    const answer = await set.chat().end();
    expect(answer.status).toBe(503);
    expect(answer.header('retry-after')).toBe('1');
    expect(Number(answer.header('retry-after-ms'))).toBeGreaterThan(0);
    expect(Number(answer.header('retry-after-ms'))).toBeLessThanOrEqual(60_000);
    expect(answer.json).toMatchObject({
      error: { message: 'all upstreams busy', code: 'all_upstreams_busy', attempts: [], param: null },
    });
    expect(set.a.requests).toHaveLength(1);
    hold.open();
    await holder.end();
    await expectFree(set);
  });

  it('are never more than the limit, in a crowd', async () => {
    const set = await stage({ upstreams: 2, upstream: (i) => ({ max_concurrency: i + 2 }) });
    const hold = gate();
    for (const up of [set.a, set.b]) {
      up.always(async (_request, answer) => {
        await hold.opened;
        await answer.json(200, completion());
      });
    }
    const answers = Array.from({ length: 40 }, () => set.chat());
    await waitFor(
      () => answers.filter(({ ending }) => ending !== null).length === 35,
      '35 of 40 were refused',
    );
    expect([set.a.requests.length, set.b.requests.length]).toEqual([2, 3]);
    hold.open();
    for (const answer of answers) await answer.end();
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(5);
    expect([set.a.mostAtOnce, set.b.mostAtOnce]).toEqual([2, 3]);
  });

  it.each([
    ['of the upstream over the provider', { max_concurrency: 5 }, { max_concurrency: 2 }, 2],
    ['of the provider', { max_concurrency: 3 }, {}, 3],
    ['of the upstream: 0 is unlimited', { max_concurrency: 1 }, { max_concurrency: 0 }, 12],
    ['of the upstream: null is unlimited', { max_concurrency: 1 }, { max_concurrency: null }, 12],
    ['that nobody gives: unlimited', {}, {}, 12],
  ])('the limit %s', async (_what, provider, upstream, expected) => {
    const set = await stage({ provider, upstream });
    const hold = gate();
    set.a.always(async (_request, answer) => {
      await hold.opened;
      await answer.json(200, completion());
    });
    const answers = Array.from({ length: 12 }, () => set.chat());
    await waitFor(
      () => set.a.requests.length + answers.filter(({ ending }) => ending !== null).length === 12,
      'every request was taken or refused',
    );
    expect(set.a.requests).toHaveLength(expected);
    hold.open();
    for (const answer of answers) await answer.end();
  });

  it("the provider's limit counts for each of its upstreams, it is no shared pot", async () => {
    const set = await stage({
      file: ([up]) => ({
        providers: [{ id: 'p', url: up?.url, max_concurrency: 1 }],
        upstreams: [
          { id: 'a', provider: 'p', model: 'x' },
          { id: 'b', provider: 'p', model: 'y' },
        ],
        models: [{ name: 'm', upstreams: ['a', 'b'] }],
      }),
    });
    const hold = gate();
    set.a.always(async (_request, answer) => {
      await hold.opened;
      await answer.json(200, completion());
    });
    const answers = [set.chat(), set.chat()];
    await set.a.chat(1);
    expect((await set.chat().end()).status).toBe(503);
    hold.open();
    expect((await Promise.all(answers.map((answer) => answer.end()))).map(({ status }) => status)).toEqual([
      200, 200,
    ]);
  });

  it('are shared by the models that use the upstream', async () => {
    const set = await stage({
      ...one,
      file: () => ({ models: ['m', 'n'].map((name) => ({ name, upstreams: ['a'] })) }),
    });
    const { holder, hold } = await occupied(set);
    expect((await set.chat({ model: 'n' }).end()).status).toBe(503);
    hold.open();
    await holder.end();
  });
});

describe('a slot comes back exactly once', () => {
  const endings: [string, (set: Stage) => Promise<RawAnswer>][] = [
    ['a success', (set) => set.chat().end()],
    ['a stream', (set) => set.stream().end()],
    ['a 4xx', (set) => (set.a.next((_r, answer) => answer.error(400)), set.chat().end())],
    ['a 5xx', (set) => (set.a.next((_r, answer) => answer.error(500)), set.chat().end())],
    ['a reset', (set) => (set.a.next((_r, answer) => answer.reset()), set.chat().end())],
    [
      'a stream that breaks',
      (set) => {
        set.a.next(async (_r, answer) => {
          await answer.sseHead();
          await answer.write(delta('x'));
          answer.reset();
        });
        return set.stream().end();
      },
    ],
  ];
  it.each(endings)('after %s', async (_what, run) => {
    const set = await stage(one);
    await run(set);
    await expectFree(set);
  });

  it.each(['reset', 'destroy'] as const)('when the client leaves before the head came (%s)', async (how) => {
    const set = await stage(one);
    set.a.next(() => {});
    const answer = set.chat();
    const received = await set.a.chat(0);
    if (how === 'reset') answer.leave();
    else answer.connection.close();
    await received.closed;
    expect(received.aborted).toBe(true);
    await expectFree(set);
  });

  it('when the client leaves in the middle of a stream', async () => {
    const set = await stage(one);
    set.a.next(async (_request, answer) => {
      await answer.sseHead();
      await answer.write(delta('begin'));
    });
    const answer = await set.stream().saw('begin');
    answer.leave();
    const received = await set.a.chat(0);
    await received.closed;
    expect(received.aborted).toBe(true);
    await expectFree(set);
  });

  it('when the client leaves in the middle of a JSON answer', async () => {
    const set = await stage(one);
    set.a.next(async (_request, answer) => {
      await answer.head(200, { 'content-type': 'application/json' });
      await answer.write('{"choices":[');
    });
    const answer = set.chat();
    const received = await set.a.chat(0);
    answer.leave();
    await received.closed;
    await expectFree(set);
  });

  it('when the client leaves while its body is still arriving', async () => {
    const set = await stage(one);
    const connection = set.gateway.connect();
    connection.send({ method: 'POST', holdBody: true, headers: { 'content-length': '1000000' } });
    connection.socket.write('{"model":"m","messages":[');
    await new Promise((resolve) => connection.socket.write(' '.repeat(1000), resolve));
    connection.socket.resetAndDestroy();
    await expectFree(set);
    expect(set.a.requests).toHaveLength(1);
  });

  it('when the client leaves while the upstream is still taking its body', async () => {
    const set = await stage(one);
    set.a.onHead = (_request, socket) => socket.pause();
    const answer = set.chat({ filler: 'x'.repeat(20_000_000) });
    await waitFor(async () => (await set.gateway.inflight('a')) === 1, 'the slot was taken');
    await waitFor(() => set.a.connections === 1, 'the upstream was reached');
    answer.leave();
    await waitFor(async () => (await set.gateway.inflight('a')) === 0, 'the slot came back');
    set.a.onHead = null;
    await expectFree(set);
  });

  it('when a client with two pipelined requests leaves', async () => {
    const set = await stage({ upstream: { max_concurrency: 2 } });
    set.a.always(() => {});
    const connection = set.gateway.connect();
    const body = { model: 'm', messages: MESSAGES };
    connection.send({ body });
    connection.send({ body });
    await set.a.chat(0);
    connection.socket.resetAndDestroy();
    await waitFor(async () => (await set.gateway.inflight('a')) === 0, 'both slots came back');
    await waitFor(() => set.a.requests.every(({ over }) => over), 'every upstream request was aborted');
  });

  it('after the exchange with the upstream is over, never before', async () => {
    const set = await stage(one);
    set.a.next(async (_request, answer) => {
      await answer.sseHead();
      await answer.write(delta('x') + DONE);
      // All is said, but the exchange is not over.
    });
    const answer = await set.stream().saw('[DONE]');
    expect(await set.gateway.inflight('a')).toBe(1);
    expect((await set.chat().end()).status).toBe(503);
    answer.leave();
    await expectFree(set);
  });

  it('whatever happens, over two hundred requests with mixed ends', async () => {
    const set = await stage({ upstreams: 2, upstream: { max_concurrency: 7 } });
    let n = 0;
    for (const up of [set.a, set.b]) {
      up.always(async (_request, answer) => {
        switch (n++ % 7) {
          case 0:
            return await answer.error(500);
          case 1:
            return answer.reset();
          case 2:
            return await answer.error(404);
          case 3:
            await answer.sseHead();
            await answer.write(delta('x'));
            return answer.destroy();
          case 4:
            return;
          case 5:
            return await answer.sse([delta('x'), DONE]);
          default:
            return await answer.json(200, completion());
        }
      });
    }
    for (let round = 0; round < 10; round++) {
      const answers = Array.from({ length: 20 }, (_, i) => (i % 2 === 0 ? set.chat() : set.stream()));
      await waitFor(
        () =>
          answers.every(({ ending }) => ending !== null) ||
          set.a.requests.some(({ over }) => !over) ||
          set.b.requests.some(({ over }) => !over),
        'something happened',
      );
      answers.forEach((answer, i) => i % 3 === 0 && answer.leave());
      await waitFor(async () => {
        const open = [set.a, set.b].flatMap(({ requests }) => requests).filter(({ over }) => !over).length;
        return answers.filter(({ ending }) => ending === null).length <= open;
      }, 'only the silent ones were left');
      for (const answer of answers) answer.leave();
      await waitFor(
        async () => (await set.gateway.inflight('a')) === 0 && (await set.gateway.inflight('b')) === 0,
        'every slot came back',
      );
    }
    const metrics = await set.gateway.metrics();
    expect(metrics.find('llm_proxy_upstream_inflight').every(({ value }) => value === 0)).toBe(true);
  });
});
