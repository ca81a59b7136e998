import { brotliCompressSync, gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { event } from '../support/answers.js';
import { bearer, consumer } from '../support/consumers.js';
import { type Stage, stage } from '../support/stage.js';

const RESPONSE = { id: 'resp_1', output: [{ id: 'msg_1', type: 'message' }] };
const JSON_TEXT = JSON.stringify(RESPONSE);
const SSE_TEXT = event({ type: 'response.completed', sequence_number: 0, response: RESPONSE });
const CODINGS = { gzip: gzipSync, br: brotliCompressSync };

const scene = (consumers?: readonly object[]): Promise<Stage> =>
  stage({
    upstreams: 2,
    provider: { protocol: 'responses' },
    file: () => (consumers === undefined ? {} : { consumers }),
  });
const ask = (set: Stage, body: object, headers: Record<string, string> = {}) =>
  set.gateway.send({ path: '/v1/responses', body: { model: 'm', input: 'x', ...body }, headers }).end();

describe('coded answers of /responses', () => {
  it.each([
    ['gzip', false],
    ['gzip', true],
    ['br', false],
    ['br', true],
  ] as const)('tell whose their ids are: %s, stream: %s', async (coding, stream) => {
    const set = await scene([consumer('red'), consumer('blue')]);
    const [text, type] = stream ? [SSE_TEXT, 'text/event-stream'] : [JSON_TEXT, 'application/json'];
    set.a.next((_r, answer) =>
      answer.send(200, CODINGS[coding](text), { 'content-type': type, 'content-encoding': coding }),
    );
    const first = await ask(set, { stream }, bearer('red'));
    expect([first.status, first.text, first.header('content-encoding')]).toEqual([200, text, undefined]);
    set.a.always((_r, answer) => answer.json(200, { id: 'resp_2' }));
    for (const named of [{ previous_response_id: 'resp_1' }, { input: [{ id: 'msg_1' }] }]) {
      expect((await ask(set, named, bearer('blue'))).status).toBe(404);
      expect((await ask(set, named, bearer('red'))).status).toBe(200);
    }
  });

  it('in a coding that nobody can read are failed attempts, where their ids must be learned', async () => {
    const set = await scene([consumer('red')]);
    set.a.next((_r, answer) =>
      answer.send(200, 'xx', { 'content-type': 'application/json', 'content-encoding': 'x-own' }),
    );
    set.b.always((_r, answer) => answer.json(200, { id: 'resp_2' }));
    expect((await ask(set, {}, bearer('red'))).json['id']).toBe('resp_2');
    expect((await ask(set, { previous_response_id: 'resp_2' }, bearer('red'))).status).toBe(200);
  });

  it('stay coded in an open service, which keeps nobody apart', async () => {
    const set = await scene();
    const coded = gzipSync(JSON_TEXT);
    set.a.next((_r, answer) =>
      answer.send(200, coded, { 'content-type': 'application/json', 'content-encoding': 'gzip' }),
    );
    const answer = await ask(set, {});
    expect(answer.header('content-encoding')).toBe('gzip');
    expect(answer.header('content-length')).toBe(String(coded.length));
  });
});

describe('a refusal in a coding that nobody can read', () => {
  it.each(['x-own', 'gzip, br'])("is the client's, as all that a provider refuses: %s", async (coding) => {
    for (const key of ['', 'sk-of-the-provider-1234']) {
      const set = await stage({ upstreams: 2, provider: { key }, upstream: { backoff: 'PT10S' } });
      set.a.next((_r, answer) =>
        answer.send(400, 'unreadable', { 'content-type': 'text/plain', 'content-encoding': coding }),
      );
      const answer = await set.chat().end();
      expect([answer.status, answer.header('x-llm-proxy-upstream')]).toEqual([400, 'a']);
      // A copy of our key could be in it.
      if (key === '')
        expect([answer.text, answer.header('content-encoding')]).toEqual(['unreadable', coding]);
      else expect(answer.json).toMatchObject({ error: { code: 'upstream_error_unreadable' } });
      const metrics = await set.gateway.metrics();
      expect(metrics.sum('llm_proxy_upstream_fail_streak')).toBe(0);
      expect(metrics.sum('llm_proxy_requests_total', { result: '4xx' })).toBe(1);
    }
  });
});
