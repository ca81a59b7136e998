import { describe, expect, it } from 'vitest';
import { completion, DONE, delta } from '../support/answers.js';
import type { LogLine } from '../support/gateway.js';
import { stage, type Stage } from '../support/stage.js';
import { gate, waitFor } from '../support/wait-for.js';

const LEVEL = { debug: 20, info: 30, warn: 40, error: 50 };
const DURATION = String.raw`duration=\d+ms`;

/** The lines about chats, without those of the start. */
const chats = (set: Stage): LogLine[] => set.gateway.lines.filter(({ msg }) => msg.includes('chat model='));
const texts = (set: Stage, level: number): string[] =>
  chats(set)
    .filter((line) => line.level === level)
    .map(({ msg }) => msg);

async function summary(set: Stage): Promise<LogLine> {
  await waitFor(() => chats(set).some(({ level }) => level >= LEVEL.info), 'a summary line was written');
  return chats(set).findLast(({ level }) => level >= LEVEL.info) as LogLine;
}

describe('the log', () => {
  it('a success: one line at info, the rest at debug', async () => {
    const set = await stage({ upstream: { max_concurrency: 4 } });
    await set.chat({}, { headers: { 'x-request-id': 'id-1' } }).end();
    const line = await summary(set);
    expect(texts(set, LEVEL.debug)).toEqual([
      '[llm-proxy] chat model=m upstream=a provider=pa active[a]=1/4',
    ]);
    expect(texts(set, LEVEL.info)).toHaveLength(1);
    expect(line.msg).toMatch(
      new RegExp(
        String.raw`^\[llm-proxy\] chat model=m upstream=a done result=ok status=200 ${DURATION} active\[a\]=0/4$`,
      ),
    );
    expect(line).toMatchObject({
      model: 'm',
      upstream: 'a',
      provider: 'pa',
      result: 'ok',
      status: 200,
      request_id: 'id-1',
    });
    expect(chats(set)).toHaveLength(2);
  });

  it('an unlimited slot prints as 1/∞', async () => {
    const set = await stage();
    await set.chat().end();
    await summary(set);
    expect(texts(set, LEVEL.debug)).toEqual([
      '[llm-proxy] chat model=m upstream=a provider=pa active[a]=1/∞',
    ]);
  });

  it('a failover: a warning for the failed attempt, one summary at info', async () => {
    const set = await stage({ upstreams: 2, upstream: { backoff: 'PT15M', probe_interval: 'PT0S' } });
    set.a.next((_r, answer) => answer.error(503, { 'retry-after': '2' }));
    await set.chat().end();
    expect((await summary(set)).msg).toContain('upstream=b done result=ok status=200');
    expect(texts(set, LEVEL.warn)).toEqual([
      '[llm-proxy] chat model=m upstream=a returned 503 → failover (backoff: rest PT2S)',
    ]);
    expect(texts(set, LEVEL.info)).toHaveLength(1);
    await set.chat().end();
    await set.gateway.logged('in backoff (~');
    expect(set.gateway.messages.find((msg) => msg.includes('in backoff'))).toMatch(
      /^\[llm-proxy\] chat model=m upstream=a in backoff \(~[12]s\), skipped$/,
    );
  });

  it('busy: one warning that shows the slots', async () => {
    const set = await stage({ upstreams: 2, upstream: { max_concurrency: 1 } });
    const hold = gate();
    for (const up of [set.a, set.b]) {
      up.always(async (_r, answer) => {
        await hold.opened;
        await answer.json(200, completion());
      });
    }
    const holders = [set.chat(), set.chat()];
    await set.b.chat(0);
    await set.chat().end();
    await set.gateway.logged('all upstreams busy');
    expect(texts(set, LEVEL.warn)).toEqual([
      '[llm-proxy] chat model=m 503 all upstreams busy (a=1/1, b=1/1)',
    ]);
    hold.open();
    for (const holder of holders) await holder.end();
  });

  it('a passed 4xx is no failure', async () => {
    const set = await stage();
    set.a.next((_r, answer) => answer.error(422));
    await set.chat().end();
    const line = await summary(set);
    expect([line.level, line['result'], line['status']]).toEqual([LEVEL.info, '4xx', 422]);
  });

  it('a broken stream: the summary is a warning', async () => {
    const set = await stage();
    set.a.next(async (_r, answer) => {
      await answer.sseHead();
      await answer.write(delta('x'));
      answer.destroy();
    });
    await set.stream().end();
    await set.gateway.logged('done result=net_err');
    const line = await summary(set);
    expect([line.level, line['result']]).toEqual([LEVEL.warn, 'net_err']);
    expect(texts(set, LEVEL.info)).toEqual([]);
  });

  it('every upstream failed: one summary, a warning', async () => {
    const set = await stage();
    set.a.next((_r, answer) => answer.error(500));
    await set.chat().end();
    await set.gateway.logged('all upstreams failed');
    expect(texts(set, LEVEL.warn)).toHaveLength(2);
    expect(texts(set, LEVEL.info)).toEqual([]);
  });

  it.each([
    ['unknown model', { model: 'none' }],
    ['no model', { model: 1 }],
  ])('a mistake of the client: one line at info (%s)', async (_what, body) => {
    const set = await stage();
    await set.chat(body).end();
    await summary(set);
    expect(chats(set).map(({ level }) => level)).toEqual([LEVEL.info]);
  });

  it('every line begins with [llm-proxy]', async () => {
    const set = await stage({ upstreams: 2 });
    set.a.next((_r, answer) => answer.reset());
    await set.chat().end();
    await set.gateway.get('/nowhere');
    await summary(set);
    for (const msg of set.gateway.messages) expect(msg).toMatch(/^\[llm-proxy\] /);
  });

  it('never holds a prompt, an answer, or a header', async () => {
    const set = await stage({
      upstreams: 2,
      logLevel: 'trace',
      provider: { think_tags: 'split', session_header: 'x-session', reasoning_field: 'r' },
    });
    const words = ['PROMPTWORD', 'ANSWERWORD', 'HEADERWORD', 'ERRORWORD', 'QUERYWORD'];
    const body = { messages: [{ role: 'user', content: 'PROMPTWORD' }] };
    const request = {
      headers: { authorization: 'Bearer HEADERWORD', 'x-y': 'HEADERWORD' },
      path: '/v1/chat/completions?k=QUERYWORD',
    };
    set.a.next(
      (_r, answer) => answer.json(500, { error: { message: 'ERRORWORD' } }),
      (_r, answer) => answer.json(400, { error: { message: 'ERRORWORD' } }),
      (_r, answer) => answer.json(200, completion('ANSWERWORD')),
      async (_r, answer) => {
        await answer.sseHead();
        await answer.write(delta('ANSWERWORD'));
        answer.destroy();
      },
    );
    for (let i = 0; i < 3; i++) await set.chat(body, request).end();
    await set.stream(body, request).end();
    await set.chat({}, { ...request, body: '{"model":"m","PROMPTWORD' }).end();
    await set.gateway.logged('result=net_err');
    const all = JSON.stringify(set.gateway.lines);
    for (const word of words) expect(all, word).not.toContain(word);
  });

  it('no text of a client forges a line', async () => {
    const set = await stage();
    const forged = '\n[llm-proxy] forged \u001b[31m\u2028\u202e';
    await set.chat({ model: `x${forged}` }).end();
    const line = await summary(set);
    // eslint-disable-next-line no-control-regex
    expect(line.msg).not.toMatch(/[\u0000-\u001f\u2028\u202e]/);
    expect(set.gateway.messages.filter((msg) => msg.startsWith('[llm-proxy] forged'))).toEqual([]);
  });

  it('at the level warn is silent where nothing is wrong', async () => {
    const set = await stage({ logLevel: 'warn' });
    await set.chat().end();
    await set.stream().end();
    expect(set.gateway.messages).toEqual([]);
  });

  it('a client that left is a summary at info', async () => {
    const set = await stage();
    set.a.next(async (_r, answer) => {
      await answer.sseHead();
      await answer.write(delta('x') + DONE);
    });
    const answer = await set.stream().saw('x');
    answer.leave();
    await set.gateway.logged('result=cancelled');
    expect([(await summary(set)).level, texts(set, LEVEL.warn)]).toEqual([LEVEL.info, []]);
  });
});
