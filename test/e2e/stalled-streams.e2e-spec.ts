import { describe, expect, it } from 'vitest';
import { chunk, completion, delta, DONE, event, finish } from '../support/answers.js';
import type { Script } from '../support/scripted-upstream.js';
import { joinDeltas } from '../support/sse-text.js';
import { stage, type Stage, type StageOptions } from '../support/stage.js';
import { gate, waitFor } from '../support/wait-for.js';

const ROLE = delta({ role: 'assistant', content: '' });
const ERROR = event({ error: { message: 'overloaded', type: 'server_error' } });

const patient: StageOptions = {
  upstreams: 2,
  upstream: (i) => ({ max_concurrency: 1, ...(i === 0 ? { first_token_timeout: 'PT10S' } : {}) }),
};
const hasty: StageOptions = {
  upstreams: 2,
  upstream: (i) => ({ max_concurrency: 1, ...(i === 0 ? { first_token_timeout: 'PT0.1S' } : {}) }),
};

/** Says this, and nothing more until its request is given up. */
const silentBehind =
  (...pieces: string[]): Script =>
  async (request, answer) => {
    await answer.sseHead();
    for (const piece of pieces) await answer.write(piece);
    await request.closed;
  };

async function resultsOf(set: Stage, upstream: string): Promise<Record<string, number>> {
  const found = (await set.gateway.metrics()).find('llm_proxy_requests_total', { upstream });
  return Object.fromEntries(found.map(({ labels, value }) => [labels['result'], value]));
}

describe('the commit barrier, where first_token_timeout is set', () => {
  it.each<[string, Script]>([
    ['an error event', (_r, answer) => answer.sse([': hi\n\n', ROLE, ERROR, DONE])],
    [
      'comments and a role before a reset',
      async (_r, answer) => {
        await answer.sseHead({ 'x-from': 'broken' });
        await answer.write(': hi\n\n');
        await answer.write(ROLE);
        answer.reset();
      },
    ],
  ])('%s fails over, and the client sees nothing of it', async (_name, script) => {
    const set = await stage(patient);
    set.a.next(script);
    const answer = await set.stream().end();
    expect(answer.header('x-llm-proxy-upstream')).toBe('b');
    expect(answer.header('x-from')).toBeUndefined();
    expect(answer.text).not.toContain('overloaded');
    expect(answer.text).not.toContain(': hi');
    expect(joinDeltas(answer.text)).toBe('hello');
    expect(answer.ending).toBe('complete');
  });

  it('sends what it held byte for byte, and nothing before the first word', async () => {
    const set = await stage(patient);
    const word = gate();
    const pieces = [': hi\n\n', ROLE, delta('')];
    set.a.next(async (_r, answer) => {
      await answer.sseHead();
      for (const piece of pieces) await answer.write(piece);
      await word.opened;
      await answer.end(delta('a') + finish() + DONE);
    });
    const answer = set.stream();
    await set.a.chat(0);
    expect(answer.size).toBe(0);
    word.open();
    expect((await answer.end()).text).toBe(pieces.join('') + delta('a') + finish() + DONE);
  });

  it('reads a coded answer for it', async () => {
    const set = await stage(patient);
    const { gzipSync } = await import('node:zlib');
    set.a.next((_r, answer) => answer.sse([gzipSync(ROLE + ERROR)], { 'content-encoding': 'gzip' }));
    expect((await set.stream().end()).header('x-llm-proxy-upstream')).toBe('b');
  });

  it('holds where errors are classified, and knows what an error in the stream means', async () => {
    const set = await stage({
      upstreams: 2,
      provider: { errors: { server_error: { retries: 0 } }, backoff: 'PT1M', probe_interval: 'PT0S' },
    });
    const failures = async (name: string): Promise<number> =>
      (await set.gateway.metrics()).sum('llm_proxy_failures_total', { upstream: 'a', class: name });
    set.a.next((_r, answer) =>
      answer.sse([ROLE, event({ error: { message: 'slow down', code: 'rate_limit_exceeded' } })]),
    );
    expect((await set.stream().end()).header('x-llm-proxy-upstream')).toBe('b');
    expect(await failures('rate_limited')).toBe(1);
  });

  it('passes what only the client can mend as an answer of its own, not as a stream', async () => {
    const set = await stage({ upstreams: 2, provider: { errors: 'classified' } });
    const error = { message: 'no such parameter', type: 'invalid_request_error', code: 400 };
    set.a.next((_r, answer) => answer.sse([ROLE, event({ error })]));
    const answer = await set.stream().end();
    expect(answer.status).toBe(400);
    expect(answer.header('content-type')).toContain('application/json');
    expect(answer.json).toEqual({ error });
    expect(set.b.requests).toHaveLength(0);
  });

  it('is not there without it: a role goes out at once', async () => {
    const set = await stage({ upstreams: 2 });
    const ending = gate();
    set.a.next(async (_r, answer) => {
      await answer.sseHead();
      await answer.write(ROLE);
      await ending.opened;
      answer.reset();
    });
    const answer = await set.stream().saw('assistant');
    ending.open();
    expect((await answer.end()).text).toContain('upstream_stream_interrupted');
    expect(set.b.requests).toHaveLength(0);
  });
});

describe('first_token_timeout', () => {
  it.each<[string, string[]]>([
    ['comments and a role', [': hi\n\n', ROLE]],
    ['a head alone', []],
    ['an empty delta', [delta('')]],
  ])('%s do not count; the next upstream takes over', async (_name, pieces) => {
    const set = await stage(hasty);
    set.a.next(silentBehind(...pieces));
    const answer = await set.stream().end();
    expect(answer.header('x-llm-proxy-upstream')).toBe('b');
    expect(answer.header('x-llm-proxy-attempts')).toBe('2');
    expect(joinDeltas(answer.text)).toBe('hello');
    expect(await resultsOf(set, 'a')).toEqual({ timeout: 1 });
    const line = await set.gateway.logged('TIMEOUT');
    expect(line.msg).toContain('upstream=a TIMEOUT: no first token within 100ms → failover');
    await set.a.last.closed;
    expect(set.a.last.aborted).toBe(true);
  });

  it.each<[string, Script]>([
    ['text', (_r, answer) => answer.sse([delta('late'), DONE])],
    ['an answer in JSON', (_r, answer) => answer.json(200, completion('late'))],
  ])('never cuts the last candidate: it waits for %s', async (_name, late) => {
    const set = await stage({ upstream: { first_token_timeout: 'PT0.05S' } });
    const word = gate();
    set.a.next(async (request, answer) => {
      await word.opened;
      await late(request, answer);
    });
    const answer = set.stream();
    await set.a.chat(0);
    // Several times over.
    await new Promise((resolve) => setTimeout(resolve, 220));
    expect(answer.ending).toBeNull();
    word.open();
    expect((await answer.end()).text).toContain('late');
    expect(await resultsOf(set, 'a')).toEqual({ ok: 1 });
  });

  it('waits while the others are busy, and goes on as soon as one is free again', async () => {
    const set = await stage(hasty);
    const busy = gate();
    set.a.next((_r, answer) => answer.error(503), silentBehind(ROLE));
    set.b.next(async (_r, answer) => {
      await busy.opened;
      await answer.sse([delta('first'), DONE]);
    });
    const first = set.stream();
    await set.b.chat(0);
    const second = set.stream();
    await set.a.chat(1);
    await new Promise((resolve) => setTimeout(resolve, 250));
    expect(set.a.last.aborted).toBe(false);
    busy.open();
    await first.end();
    expect((await second.end()).header('x-llm-proxy-upstream')).toBe('b');
  });

  it('does not hold where the request asks for no stream', async () => {
    const set = await stage(hasty);
    const word = gate();
    set.a.next(async (_r, answer) => {
      await word.opened;
      await answer.json(200, completion('late'));
    });
    const answer = set.chat();
    await set.a.chat(0);
    await new Promise((resolve) => setTimeout(resolve, 200));
    word.open();
    expect((await answer.end()).header('x-llm-proxy-upstream')).toBe('a');
  });

  it('a stream that is to be joined waits for its first token too', async () => {
    const set = await stage({ ...hasty, model: { patch: { stream: true } } });
    set.a.next(silentBehind(ROLE));
    const answer = await set.chat().end();
    expect(answer.header('x-llm-proxy-upstream')).toBe('b');
    expect(answer.json).toMatchObject({ object: 'chat.completion' });
  });

  it('costs no slot where the client leaves at that moment', async () => {
    const set = await stage(hasty);
    set.a.next(silentBehind(ROLE));
    set.b.always(silentBehind(ROLE));
    const answer = set.stream();
    await set.b.chat(0);
    answer.leave();
    // That no slot stays taken is what every stage checks at its end.
    await waitFor(async () => (await set.gateway.inflight('b')) === 0, 'the slot is free');
  });

  it('does not take over where max_attempts allows no other attempt', async () => {
    const set = await stage({ ...hasty, model: { max_attempts: 1 } });
    const word = gate();
    set.a.next(async (_r, answer) => {
      await answer.sseHead();
      await word.opened;
      await answer.end(delta('late') + DONE);
    });
    const answer = set.stream();
    await set.a.chat(0);
    await new Promise((resolve) => setTimeout(resolve, 220));
    word.open();
    expect(joinDeltas((await answer.end()).text)).toBe('late');
  });
});

describe('idle_timeout', () => {
  const idle: StageOptions = { upstreams: 2, upstream: { idle_timeout: 'PT0.15S', max_concurrency: 1 } };

  it('ends a stream that says nothing more: the error event, result timeout, the request aborted', async () => {
    const set = await stage(idle);
    set.a.next(silentBehind(delta('one')));
    const answer = await set.stream().end();
    expect(answer.text).toContain('upstream_stream_interrupted');
    expect(answer.text).not.toContain('[DONE]');
    await set.a.last.closed;
    expect(set.a.last.aborted).toBe(true);
    expect(await resultsOf(set, 'a')).toEqual({ timeout: 1 });
    expect((await set.gateway.logged('silent for 150ms')).msg).toContain('answer interrupted');
  });

  it('fails over where half a JSON answer is followed by silence', async () => {
    const set = await stage(idle);
    set.a.next(async (request, answer) => {
      await answer.head(200, { 'content-type': 'application/json' });
      await answer.write('{"choices":[');
      await request.closed;
    });
    const answer = await set.chat().end();
    expect(answer.header('x-llm-proxy-upstream')).toBe('b');
    expect(await resultsOf(set, 'a')).toEqual({ timeout: 1 });
  });

  it('does not count before the first byte', async () => {
    const set = await stage(idle);
    const word = gate();
    set.a.next(async (_r, answer) => {
      await answer.sseHead();
      await word.opened;
      await answer.end(delta('late') + DONE);
    });
    const answer = set.stream();
    await set.a.chat(0);
    await new Promise((resolve) => setTimeout(resolve, 300));
    word.open();
    expect(joinDeltas((await answer.end()).text)).toBe('late');
  });

  it('any byte counts, a comment too', async () => {
    const set = await stage({ upstream: { idle_timeout: 'PT0.5S' } });
    set.a.next(async (_r, answer) => {
      await answer.sseHead();
      await answer.write(delta('one'));
      for (let i = 0; i < 8; i++) {
        await new Promise((resolve) => setTimeout(resolve, 100));
        await answer.write(': ping\n\n');
      }
      await answer.end(delta('two') + DONE);
    });
    expect(joinDeltas((await set.stream().end()).text)).toBe('onetwo');
  });

  it('the client’s own slowness is not the upstream’s silence', async () => {
    const set = await stage(idle);
    const big = event(chunk({ delta: { content: 'x'.repeat(64 * 1024) } }));
    const COUNT = 400;
    set.a.next(async (_r, answer) => {
      await answer.sseHead();
      for (let i = 0; i < COUNT; i++) await answer.write(big);
      await answer.end(DONE);
    });
    const answer = set.stream();
    await answer.head();
    answer.connection.socket.pause();
    // The stream stands still from here on.
    await new Promise((resolve) => setTimeout(resolve, 600));
    answer.connection.socket.resume();
    expect((await answer.end()).ending).toBe('complete');
    expect(answer.size).toBe(COUNT * big.length + DONE.length);
  });
});

describe('llm_proxy_stream_interrupted_total', () => {
  const breaks =
    (...pieces: string[]): Script =>
    async (_request, answer) => {
      await answer.sseHead();
      for (const piece of pieces) await answer.write(piece);
      answer.reset();
    };

  it('counts breaks by what they broke into, and nothing that a client left', async () => {
    const set = await stage();
    const cases: [string, string[]][] = [
      ['before_content', [ROLE]],
      ['content', [ROLE, delta('a')]],
      ['tool_calls', [ROLE, delta({ tool_calls: [{ index: 0, id: 'x' }] })]],
      ['after_finish', [delta('a'), finish()]],
    ];
    for (const [phase, pieces] of cases) {
      set.a.next(breaks(...pieces));
      await set.stream().end();
      const metrics = await set.gateway.metrics();
      const label = { upstream: 'a', phase };
      expect(metrics.sum('llm_proxy_stream_interrupted_total', label), phase).toBe(1);
    }
    set.a.next(silentBehind(delta('a')));
    const left = set.stream();
    await left.saw('"a"');
    left.leave();
    await set.a.last.closed;
    const metrics = await set.gateway.metrics();
    expect(metrics.sum('llm_proxy_stream_interrupted_total')).toBe(cases.length);
  });
});

describe('a slow client', () => {
  it('gets all of a stream without a content type, which had to be told by its bytes', async () => {
    const set = await stage();
    const big = event(chunk({ delta: { content: 'x'.repeat(64 * 1024) } }));
    const COUNT = 200;
    set.a.next(async (_r, answer) => {
      await answer.head(200);
      for (let i = 0; i < COUNT; i++) await answer.write(big);
      await answer.end(DONE);
    });
    const answer = set.stream({}, { discard: true });
    await answer.head();
    answer.connection.socket.pause();
    await new Promise((resolve) => setTimeout(resolve, 100));
    answer.connection.socket.resume();
    expect((await answer.end()).ending).toBe('complete');
    expect(answer.size).toBe(COUNT * big.length + DONE.length);
  });
});
