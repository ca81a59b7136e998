import { describe, expect, it } from 'vitest';
import { stage, type StageOptions } from '../support/stage.js';

/** Sends these bytes and gives back what reached the upstream. */
async function sent(body: string, options: StageOptions = {}): Promise<string> {
  const { a, gateway } = await stage(options);
  a.always((_request, answer) => answer.json(200, { choices: [] }));
  const answer = await gateway.send({ body }).end();
  expect(answer.status).toBe(200);
  return a.last.text;
}

describe('what no rule touches reaches the provider unchanged', () => {
  it.each([
    ['integers beyond 2^53', '{"seed":12345678901234567890,"model":"m"}'],
    ['number forms', '{"a":1.0,"b":1e5,"c":-0,"d":1E+2,"model":"m","e":0.10}'],
    ['key order', '{"z":1,"model":"m","a":2,"10":3,"2":4}'],
    ['white space', ' {\r\n\t"model" : "m" ,\n "messages" : [ ] } \n'],
    ['escapes', '{"model":"m","messages":[{"content":"\\u00e9\\/\\ud800\\u0000"}]}'],
    ['duplicate keys in messages', '{"model":"m","messages":[{"role":"user","role":"system"}]}'],
    ['a trap', '{"model":"m","__proto__":{"a":1},"constructor":{"prototype":{}}}'],
    ['model in a nested place', '{"x":{"model":"m"},"model":"m","y":"\\"model\\":\\"m\\""}'],
  ])('%s', async (_what, body) => {
    const at =
      body.lastIndexOf(',"model"') >= 0 && body.startsWith('{"x"') ? body.lastIndexOf(',"model"') : 0;
    const expected = body.slice(0, at) + body.slice(at).replace(/("model"\s*:\s*)"m"/, '$1"real-a"');
    expect(await sent(body)).toBe(expected);
  });

  it('an escaped model name is found', async () => {
    expect(await sent('{"\\u006dodel":"\\u006d"}')).toMatch(
      /^\{"\\u006dodel":"real-a"\}$|^\{"model":"real-a"\}$/,
    );
  });

  it('a top-level key that stands twice: the last counts, the others go', async () => {
    const text = await sent('{"model":"none","a":1,"model":"m","b":2}');
    expect(text).toBe('{"a":1,"model":"real-a","b":2}');
  });

  it('bytes in UTF-8 and 4-byte characters', async () => {
    const body = '{"model":"m","messages":[{"content":"Привет 😀"}]}';
    expect(await sent(body)).toBe(body.replace('"m"', '"real-a"'));
  });

  it('leaves the neighbours of a merged key alone', async () => {
    const text = await sent('{"model":"m","extra":{"n":1.0,"big":12345678901234567890},"temperature":1.00}', {
      provider: { patch: { extra: { added: true } } },
    });
    expect(text).toBe(
      '{"model":"real-a","extra":{"n":1.0,"big":12345678901234567890,"added":true},"temperature":1.00}',
    );
  });
});

describe('patches', () => {
  it('merge provider, upstream, model in this order', async () => {
    const text = await sent('{"model":"m","o":{"client":1,"k":0}}', {
      provider: { patch: { o: { p: 1, k: 1 }, l: [1, 2] } },
      upstream: { patch: { o: { u: 1, k: 2 }, l: [3] } },
      model: { patch: { o: { m: 1, k: 3 }, s: 'x' } },
    });
    expect(JSON.parse(text)).toEqual({
      model: 'real-a',
      o: { client: 1, k: 3, p: 1, u: 1, m: 1 },
      l: [3],
      s: 'x',
    });
  });

  it('replace arrays and scalars, also an object by a scalar and back', async () => {
    const text = await sent('{"model":"m","stop":["a","b"],"x":{"y":1},"z":1}', {
      upstream: { patch: { stop: ['c'], x: 5, z: { q: [] } } },
    });
    expect(JSON.parse(text)).toEqual({ model: 'real-a', stop: ['c'], x: 5, z: { q: [] } });
  });

  it('set null', async () => {
    expect(
      JSON.parse(
        await sent('{"model":"m","stop":"x"}', { model: { patch: { stop: null, n: { d: null } } } }),
      ),
    ).toEqual({ model: 'real-a', stop: null, n: { d: null } });
  });

  it('override the model', async () => {
    expect(JSON.parse(await sent('{"model":"m"}', { model: { patch: { model: 'other' } } }))).toEqual({
      model: 'other',
    });
  });

  it('override stream: the final body decides', async () => {
    const { a, chat } = await stage({ upstream: { patch: { stream: true } } });
    const answer = await chat({ stream: false }).end();
    expect(a.last.json['stream']).toBe(true);
    expect(answer.status).toBe(200);
  });

  it('hold `${` literally and `__proto__` as a plain key', async () => {
    const { a, gateway } = await stage({
      file: () => ({
        models: [
          {
            name: 'm',
            upstreams: ['a'],
            patch: JSON.parse('{"t":"${HOME}","__proto__":{"polluted":1},"constructor":1}') as object,
          },
        ],
      }),
    });
    await gateway.send({ body: '{"model":"m"}' }).end();
    expect(a.last.text).toBe('{"model":"real-a","t":"${HOME}","__proto__":{"polluted":1},"constructor":1}');
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
  });

  it('never leak into the next attempt or the next request', async () => {
    const { a, b, gateway } = await stage({
      upstreams: 2,
      upstream: (i) =>
        i === 0 ? { patch: { o: { of_a: true }, only: 'a' } } : { patch: { o: { of_b: true } } },
    });
    a.always((_request, answer) => answer.error(500));
    for (let i = 0; i < 2; i++) {
      await gateway.send({ body: `{"model":"m","o":{"n":${i}.0}}` }).end();
      expect(a.last.text).toBe(`{"model":"real-a","o":{"n":${i}.0,"of_a":true},"only":"a"}`);
      expect(b.last.text).toBe(`{"model":"real-b","o":{"n":${i}.0,"of_b":true}}`);
    }
  });
});
