import { describe, expect, it } from 'vitest';
import { completion } from '../support/answers.js';
import { bearer, consumer } from '../support/consumers.js';
import { stage } from '../support/stage.js';

const closed = () => ({ consumers: [consumer('red')] });

describe('a key of the body that is "model" but for case', () => {
  const bodies = [
    '{"model":"m","messages":[],"Model":"real-big"}',
    '{"MODEL":"real-big","model":"m","messages":[]}',
    String.raw`{"model":"m","messages":[],"m\u004fdel":"real-big"}`,
    '{"Model":"m","messages":[]}',
  ];
  const paths = ['chat/completions', 'completions', 'embeddings', 'responses', 'messages', 'messages/count_tokens', 'rerank', 'images/generations', 'audio/speech']; // prettier-ignore

  it('is refused where consumers are apart, whatever is asked', async () => {
    const set = await stage({ file: closed });
    for (const path of paths)
      for (const body of bodies) {
        const answer = await set.gateway.send({ path: `/v1/${path}`, body, headers: bearer('red') }).end();
        const error = answer.json['error'] as Record<string, string>;
        expect([answer.status, error['code'], error['param']]).toEqual([400, 'miscased_key', 'model']);
        expect(error['message']).toMatch(/^The key "(Model|MODEL|mOdel)" differs from "model" only in case/);
        expect(answer.json['type']).toBe(path.startsWith('messages') ? 'error' : undefined);
      }
    expect(set.a.requests).toHaveLength(0);
    const metrics = await set.gateway.metrics();
    expect(metrics.sum('llm_proxy_rejected_total', { reason: 'bad_request' })).toBe(
      paths.length * bodies.length,
    );
  });

  it('passes in an open service, byte for byte', async () => {
    const set = await stage();
    const [body = ''] = bodies;
    const answer = await set.gateway.send({ path: '/v1/chat/completions', body }).end();
    expect(answer.status).toBe(200);
    expect(set.a.last.text).toContain('"Model":"real-big"');
  });

  it.each([
    ['a NUL, which ends it', String.raw`"model\u0000x"`],
    ['half a surrogate pair', String.raw`"mod\ud800el"`],
    ['half a surrogate pair behind another script', String.raw`"é\udc00"`],
    ['bytes that are no UTF-8', '"mod\xffel"'],
    ['bytes that are no UTF-8 beside an escape', String.raw`"m\u006fd` + '\xffel"'],
  ])('is refused where some readers see another one: %s', async (_what, key) => {
    const set = await stage({ file: closed });
    const body = Buffer.from(`{"model":"m","messages":[],${key}:"real-big"}`, 'latin1');
    const answer = await set.chat({}, { body, headers: bearer('red') }).end();
    expect([answer.status, answer.json]).toMatchObject([400, { error: { code: 'invalid_json' } }]);
    expect(set.a.requests).toHaveLength(0);
  });

  it('passes in any script', async () => {
    const set = await stage({ file: closed });
    const body = String.raw`{"model":"m","messages":[],"ü€😀":1,"\ud83d\ude00é":2,"":3}`;
    expect((await set.chat({}, { body, headers: bearer('red') }).end()).status).toBe(200);
    expect(set.a.last.text).toContain(String.raw`"ü€😀":1,"\ud83d\ude00é":2,"":3`);
  });

  it('is refused in every form, whose readers differ in how they read names', async () => {
    const set = await stage({ file: closed, upstream: { serves: ['audio'] } });
    const field = (name: string, value: string) =>
      `--b\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;
    const answer = await set.gateway
      .send({
        path: '/v1/audio/transcriptions',
        body: `${field('Model', 'x')}${field('model', 'm')}--b--\r\n`,
        headers: { ...bearer('red'), 'content-type': 'multipart/form-data; boundary=b' },
      })
      .end();
    expect([answer.status, answer.json]).toMatchObject([400, { error: { param: 'model' } }]);
    expect(set.a.requests).toHaveLength(0);
  });
});

describe('a body that only lenient readers could read', () => {
  const bodies = [
    '{"model":"m","messages":[/*"*/],"model":"real-big","x":[/*"*/]}',
    `{"model":"m","messages":[{'role':'user'}]}`,
    '{"model":"m","messages":[],"x":[//"\n],"model":"real-big","y":[//"\n]}',
    `{"model":"m","messages":[],"x":[a"],model:'real-big',y:[a"]}`,
    '{"model":"m","messages":[],"x":[1 [\n],"model":"real-big","y":[a ]\n]}',
  ];

  it('is refused where consumers are apart', async () => {
    const set = await stage({ file: closed });
    for (const path of ['chat/completions', 'embeddings', 'responses', 'messages'])
      for (const body of bodies) {
        const answer = await set.gateway.send({ path: `/v1/${path}`, body, headers: bearer('red') }).end();
        expect([answer.status, answer.json]).toMatchObject([400, { error: { code: 'invalid_json' } }]);
        expect(answer.text).toMatch(/at byte \d+ it is no JSON/);
      }
    expect(set.a.requests).toHaveLength(0);
  });

  it('passes in an open service, byte for byte', async () => {
    const set = await stage();
    for (const body of bodies) {
      set.a.next((_r, upstream) => upstream.json(200, completion()));
      const answer = await set.gateway.send({ path: '/v1/chat/completions', body }).end();
      expect(answer.status).toBe(200);
      expect(set.a.last.text).toBe(body.replace('"m"', '"real-a"'));
    }
  });
});

describe('a content type that another reader could read the body by', () => {
  it.each([
    ['chat/completions', 'application/json; charset=utf-7'],
    ['responses', 'application/json; charset="utf-16"'],
    ['audio/transcriptions', 'multipart/form-data; boundary=b; charset=utf-7'],
    ['audio/transcriptions', "multipart/form-data; boundary=b; boundary*=utf-8''c"],
  ])('is a 415 at /v1/%s: %s', async (path, type) => {
    const set = await stage({ upstream: { serves: ['chat', 'audio'] } });
    const answer = await set.gateway
      .send({ path: `/v1/${path}`, body: '{"model":"m"}', headers: { 'content-type': type } })
      .end();
    expect([answer.status, answer.json]).toMatchObject([415, { error: { code: 'unsupported_media_type' } }]);
    expect(answer.text).toContain('in UTF-8');
    expect(set.a.requests).toHaveLength(0);
  });
});
