import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { completion, DONE, delta } from '../support/answers.js';
import type { ScriptedAnswer } from '../support/scripted-answer.js';
import { MESSAGES, stage } from '../support/stage.js';
import { gate, waitFor } from '../support/wait-for.js';

const JSON_TYPE = { 'content-type': 'application/json' };
const MIB = 1024 * 1024;

describe('relaying a stream', () => {
  it('flushes each chunk at once, events whole or not', async () => {
    const set = await stage();
    const steps = ['data: {"a"', ':1}\n', '\n', ': comment\n\n', delta('x'), '\r\ndata: y\r\r', DONE];
    const gates = steps.map(() => gate());
    set.a.next(async (_r, answer) => {
      await answer.sseHead();
      for (const [i, step] of steps.entries()) {
        await answer.write(step);
        await gates[i]?.opened;
      }
      await answer.end();
    });
    const answer = set.stream();
    let seen = '';
    for (const [i, step] of steps.entries()) {
      seen += step;
      await waitFor(() => answer.text === seen, `piece ${i} arrived before the next was written`);
      gates[i]?.open();
    }
    expect((await answer.end()).ending).toBe('complete');
  });

  it('is byte for byte the upstream, whatever its framing', async () => {
    for (const framing of ['chunked', 'close'] as const) {
      const set = await stage();
      const text =
        ': hi\r\n\r\ndata:{"x":1.0}\n\nid: 7\nevent: e\ndata: a\ndata: b\n\ndata: \u{1f600} last without blank line';
      set.a.next((_r, answer) => answer.sse([text], {}, framing));
      const answer = await set.stream().end();
      expect([answer.text, answer.ending]).toEqual([text, 'complete']);
    }
  });

  it('holds a fast upstream back for a slow client, with bounded memory', async () => {
    const set = await stage();
    const piece = Buffer.alloc(64 * 1024, `${delta('y')}`);
    const total = 80 * MIB;
    let written = 0;
    set.a.next(async (_r, answer) => {
      await answer.sseHead();
      while (written < total && !answer.socket.destroyed) {
        await answer.write(piece);
        written += piece.length;
      }
      await answer.end(DONE);
    });
    const answer = set.stream({}, { discard: true });
    await answer.head();
    answer.connection.socket.pause();
    // It has stopped where it wrote nothing more over many turns.
    let before = -1;
    let quiet = 0;
    await waitFor(async () => {
      quiet = written === before ? quiet + 1 : 0;
      before = written;
      await set.gateway.metrics();
      return quiet > 60;
    }, 'the upstream was held back');
    expect(written).toBeLessThan(24 * MIB);
    answer.connection.socket.resume();
    await answer.end();
    expect(answer.size).toBe(total + DONE.length);
    expect(answer.ending).toBe('complete');
  });

  it('holds a fast client back for a slow upstream', async () => {
    const set = await stage();
    const slow = gate();
    set.a.onHead = (_request, socket) => {
      socket.pause();
      void slow.opened.then(() => socket.resume());
    };
    const filler = 'x'.repeat(30 * MIB);
    const answer = set.chat({ filler });
    await waitFor(async () => (await set.gateway.inflight('a')) === 1, 'the request was under way');
    expect(set.a.requests).toHaveLength(0);
    slow.open();
    expect((await answer.end()).status).toBe(200);
    expect(set.a.last.body.length).toBeGreaterThan(filler.length);
  });

  it.each(['reset', 'destroy'] as const)('tells the client in band of a break (%s)', async (how) => {
    const set = await stage({ upstreams: 2 });
    set.a.next(async (_r, answer) => {
      await answer.sseHead();
      await answer.write(delta('begin'));
      await seen.opened;
      answer[how]();
    });
    const seen = gate();
    const answer = await set.stream().saw('begin');
    seen.open();
    await answer.end();
    await waitFor(() => answer.connection.closed, 'the connection was ended');
    expect(answer.text).toMatch(/^data: .*begin.*\n\ndata: \{"error":\{.*\}\}\n\n$/);
    expect(answer.events.at(-1)?.json).toMatchObject({
      error: { message: expect.any(String), type: 'upstream_error', code: 'upstream_stream_interrupted' },
    });
    expect(answer.text).not.toContain('[DONE]');
    expect(set.b.requests).toEqual([]);
    expect(
      (await set.gateway.metrics()).sum('llm_proxy_requests_total', { upstream: 'a', result: 'net_err' }),
    ).toBe(1);
  });

  it('serves who asks at once behind a broken answer, whose head had said that the connection stays', async () => {
    const set = await stage();
    const breaks = async (_request: unknown, answer: ScriptedAnswer): Promise<void> => {
      await answer.sseHead();
      await answer.write(delta('begin'));
      answer.reset();
    };
    set.a.next(breaks);
    const broken = await set.stream().end();
    expect([broken.ending, broken.header('connection')]).toEqual(['complete', 'keep-alive']);
    const next = await broken.connection.send({ body: { model: 'm', messages: [] } }).end();
    expect([next.status, next.header('connection'), next.ending]).toEqual([200, 'close', 'complete']);
    await waitFor(() => next.connection.closed, 'the connection was ended with it');
  });

  it('takes a joined answer for whole once [DONE] has come, whatever becomes of the connection', async () => {
    const set = await stage({ upstreams: 2 });
    set.a.next(async (_request, answer) => {
      await answer.sseHead();
      await answer.write(delta('whole') + DONE);
      answer.reset();
    });
    const answer = await set.chat().end();
    expect([answer.status, answer.header('x-llm-proxy-upstream')]).toEqual([200, 'a']);
    expect(answer.text).toContain('"whole"');
  });

  it('takes no coded one for whole whose coding is cut, though [DONE] can be read', async () => {
    const set = await stage({ upstreams: 2 });
    set.a.next(async (_request, answer) => {
      await answer.sseHead({ 'content-encoding': 'gzip' });
      await answer.write(gzipSync(delta('whole') + DONE).subarray(0, -4));
      await answer.end();
    });
    expect((await set.chat().end()).header('x-llm-proxy-upstream')).toBe('b');
  });

  it('cuts no answer short that is still sent in front of the one that ends the connection', async () => {
    const set = await stage();
    const held = gate();
    set.a.next(async (_request, answer) => {
      await answer.sseHead();
      await answer.write(delta('begin'));
      answer.reset();
    });
    set.a.next(async (_request, answer) => {
      await answer.sseHead();
      await answer.write(delta('more'));
      await held.opened;
      await answer.end(DONE);
    });
    const { connection } = await set.stream().end();
    const running = connection.send({ body: { model: 'm', stream: true, messages: MESSAGES } });
    connection.send({ body: { messages: [] } });
    await running.saw('more');
    // Longer than the connection of a broken stream stays.
    await new Promise((resolve) => setTimeout(resolve, 1500));
    held.open();
    await running.end();
    expect([running.ending, running.events.at(-1)?.data]).toEqual(['complete', '[DONE]']);
  });

  it.each([
    ['in the middle of a line', `${delta('begin')}data: {"half":`],
    ['after one line end', `${delta('begin')}data: {"half":1}\n`],
    ['in a CRLF', 'data: begin\r\n\r\ndata: half\r'],
    [
      'inside a character',
      Buffer.concat([Buffer.from(`${delta('begin')}data: `), Buffer.from('é').subarray(0, 1)]),
    ],
  ])('closes an open event first: %s', async (_what, bytes) => {
    const set = await stage();
    const seen = gate();
    set.a.next(async (_r, answer) => {
      await answer.sseHead();
      await answer.write(bytes);
      await seen.opened;
      answer.destroy();
    });
    const answer = set.stream();
    await waitFor(() => answer.size === Buffer.from(bytes as string).length, 'the bytes arrived');
    seen.open();
    await answer.end();
    expect(answer.events.at(-1)?.json).toMatchObject({ error: { code: 'upstream_stream_interrupted' } });
    expect(answer.text).not.toContain('[DONE]');
  });

  it('tells of a request timeout in the middle of a stream', async () => {
    const set = await stage({ upstream: { request_timeout: 'PT0.3S' } });
    set.a.next(async (_r, answer) => {
      await answer.sseHead();
      await answer.write(delta('begin'));
    });
    const answer = await set.stream().end();
    expect(answer.events.at(-1)?.json).toMatchObject({
      error: {
        code: 'upstream_stream_interrupted',
        message: 'The time limit was reached in the middle of this answer; what came is incomplete.',
      },
    });
    expect((await set.gateway.metrics()).sum('llm_proxy_requests_total', { result: 'net_err' })).toBe(1);
  });

  it.each([
    ['as it comes', {}, {}],
    ['with think tags', { think_tags: 'split' }, {}],
    ['where others would go on', {}, { on_interrupt: 'continue' }],
  ])('a break after [DONE] is none: %s', async (_what, provider, model) => {
    const set = await stage({ provider, model });
    const seen = gate();
    set.a.next(async (_r, answer) => {
      await answer.sseHead();
      await answer.write(delta('x') + DONE);
      await seen.opened;
      answer.destroy();
    });
    const answer = await set.stream().saw('[DONE]');
    seen.open();
    await answer.end();
    expect(answer.text.endsWith(DONE)).toBe(true);
    expect(answer.text.split('[DONE]')).toHaveLength(2);
    const metrics = await set.gateway.metrics();
    expect(metrics.sum('llm_proxy_requests_total', { upstream: 'a', result: 'ok' })).toBe(1);
    expect(metrics.sum('llm_proxy_stream_interrupted_total')).toBe(0);
  });

  it('a break behind more than [DONE] is one', async () => {
    const set = await stage();
    const seen = gate();
    set.a.next(async (_r, answer) => {
      await answer.sseHead();
      await answer.write(`${delta('x')}${DONE}data: {"choices":[]}`);
      await seen.opened;
      answer.destroy();
    });
    const answer = await set.stream().saw('"choices":[]}');
    seen.open();
    await answer.end();
    expect(answer.text).toContain('upstream_stream_interrupted');
    expect((await set.gateway.metrics()).sum('llm_proxy_requests_total', { result: 'net_err' })).toBe(1);
  });

  it('works for many streams at once', async () => {
    const set = await stage();
    const answers = Array.from({ length: 100 }, (_, i) => set.stream({ n: i }));
    set.a.always((request, answer) => answer.sse([delta(`<${String(request.json['n'])}>`), DONE]));
    for (const [i, answer] of answers.entries()) {
      await answer.end();
      expect(answer.text).toBe(delta(`<${i}>`) + DONE);
    }
  });
});

describe('relaying a JSON answer', () => {
  it('does not start before its body is complete', async () => {
    const set = await stage({ upstreams: 2 });
    const text = JSON.stringify(completion());
    const half = gate();
    set.a.next(async (_r, answer) => {
      await answer.head(200, { ...JSON_TYPE, 'content-length': String(text.length) }, 'length');
      await answer.raw(text.slice(0, 20));
      half.open();
      await release.opened;
      answer.destroy();
    });
    const release = gate();
    const answer = set.chat();
    await half.opened;
    for (let i = 0; i < 5; i++) await set.gateway.metrics();
    expect(answer.status).toBe(0);
    release.open();
    await answer.end();
    expect([answer.status, answer.header('x-llm-proxy-upstream')]).toEqual([200, 'b']);
  });

  it('pipes more than 8 MiB', async () => {
    const set = await stage();
    const text = JSON.stringify(completion('x'.repeat(20 * MIB)));
    set.a.next((_r, answer) => answer.json(200, text));
    const answer = await set.chat().end();
    expect([answer.status, answer.size, answer.ending]).toEqual([200, text.length, 'complete']);
    expect(answer.text === text).toBe(true);
  });

  it('cuts one over 8 MiB without the final chunk where it breaks', async () => {
    const set = await stage({ upstreams: 2 });
    const seen = gate();
    set.a.next(async (_r, answer) => {
      await answer.head(200, JSON_TYPE);
      await answer.write('{"choices":[{"x":"');
      await answer.write(Buffer.alloc(9 * MIB, 'x'));
      await seen.opened;
      answer.destroy();
    });
    const answer = await set.chat({}, { discard: true }).head();
    await waitFor(() => answer.size > 8 * MIB, 'it was piped');
    seen.open();
    await answer.end();
    expect(answer.status).toBe(200);
    expect(['cut', 'reset']).toContain(answer.ending);
    expect(set.b.requests).toEqual([]);
    expect(
      (await set.gateway.metrics()).sum('llm_proxy_requests_total', { upstream: 'a', result: 'net_err' }),
    ).toBe(1);
  });

  it.each([
    ['inside a string', '{"choices":[{"x":"', '', 'net_err'],
    ['behind an inner bracket', '{"choices":[{"x":"', '"}]', 'net_err'],
    ['nowhere', '{"choices":[{"x":"', '"}]}\n', 'ok'],
  ])(
    'over 8 MiB that only the end of the connection delimits, cut %s, never looks more whole than it is',
    async (_where, before, after, result) => {
      const set = await stage();
      set.a.next(async (_r, answer) => {
        await answer.head(200, JSON_TYPE, 'close');
        await answer.write(before);
        await answer.write(Buffer.alloc(9 * MIB, '\\"'));
        if (after !== '') await answer.write(after);
        await answer.end();
      });
      const answer = await set.chat({}, { discard: true }).end();
      expect(answer.status).toBe(200);
      if (result === 'ok') expect(answer.ending).toBe('complete');
      else expect(['cut', 'reset']).toContain(answer.ending);
      await waitFor(async () => (await set.gateway.inflight('a')) === 0, 'the slot came back');
      expect((await set.gateway.metrics()).sum('llm_proxy_requests_total', { result })).toBe(1);
    },
  );

  it('is not inspected for an error over 8 MiB', async () => {
    const set = await stage({ upstreams: 2 });
    const text = JSON.stringify({ error: { message: 'x'.repeat(9 * MIB) } });
    set.a.next((_r, answer) => answer.json(200, text));
    const answer = await set.chat({}, { discard: true }).end();
    expect([answer.size, answer.header('x-llm-proxy-upstream')]).toEqual([text.length, 'a']);
  });

  it('with a request timeout before the end fails over', async () => {
    const set = await stage({
      upstreams: 2,
      upstream: (i) => (i === 0 ? { request_timeout: 'PT0.2S' } : {}),
    });
    set.a.next(async (_r, answer) => {
      await answer.head(200, JSON_TYPE);
      await answer.write('{');
    });
    expect((await set.chat().end()).header('x-llm-proxy-upstream')).toBe('b');
  });

  it('passes a status other than 200 of a success', async () => {
    const set = await stage();
    set.a.next((_r, answer) => answer.json(202, completion()));
    expect((await set.chat().end()).status).toBe(202);
  });

  it.each([
    ['off', true],
    ['split', true],
    ['off', false],
  ])(
    'passes a whole stream whose last lines no blank line parts (think_tags %s, stream: %s)',
    async (tags, streaming) => {
      const set = await stage({ upstreams: 2, upstream: { think_tags: tags, backoff: 'PT1S' } });
      const bytes = `${delta('a')}data: {"choices":[{"index":0,"delta":{"content":"b"}}]}\ndata: [DONE]\n`;
      set.a.next((_r, answer) => answer.sse([bytes]));
      const answer = await set.chat({ stream: streaming }).end();
      expect([answer.status, answer.header('x-llm-proxy-upstream')]).toEqual([200, 'a']);
      if (streaming) expect(answer.text).toBe(bytes);
      else expect(answer.json).toMatchObject({ choices: [{ message: { content: 'ab' } }] });
      const metrics = await set.gateway.metrics();
      expect(metrics.sum('llm_proxy_upstream_fail_streak')).toBe(0);
      expect(metrics.sum('llm_proxy_requests_total', { result: 'ok' })).toBe(1);
    },
  );

  it.each([
    ['nothing', ''],
    ['only the end', 'data: [DONE]\n\n'],
    ['only a comment', ': hello\n\n'],
  ])('joins a stream that ends cleanly and holds %s to an empty answer', async (_what, bytes) => {
    const set = await stage({ upstreams: 2 });
    set.a.next(async (_r, answer) => {
      await answer.sseHead();
      if (bytes !== '') await answer.write(bytes);
      await answer.end();
    });
    const answer = await set.chat().end();
    expect([answer.status, answer.header('x-llm-proxy-upstream')]).toEqual([200, 'a']);
    expect(answer.json).toMatchObject({
      object: 'chat.completion',
      choices: [{ index: 0, message: { role: 'assistant', content: '' } }],
    });
    expect((await set.gateway.metrics()).sum('llm_proxy_requests_total', { result: 'ok' })).toBe(1);
  });

  it('joins a stream that breaks into nothing: the next upstream answers', async () => {
    const set = await stage({ upstreams: 2 });
    set.a.next(async (_r, answer) => {
      await answer.sseHead();
      await answer.write(delta('half'));
      answer.destroy();
    });
    const answer = await set.chat().end();
    expect([answer.status, answer.header('x-llm-proxy-upstream')]).toEqual([200, 'b']);
  });
});
