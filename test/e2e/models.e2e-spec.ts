import supertest from 'supertest';
import { describe, expect, it } from 'vitest';
import { stage } from '../support/stage.js';

const names = ['m', 'org/model:7b', 'weird name', 'ünïcode', 'a', '10', '2', 'tr/', 'x//y'];
const withNames = {
  file: () => ({ models: names.map((name) => ({ name, upstreams: ['a'] })) }),
};
interface Entry {
  id: string;
  created: number;
}

describe('GET /v1/models', () => {
  it.each(['/v1/models', '/models', '/v1/models/', '//models'])(
    'lists the models in file order at %s',
    async (path) => {
      const { a, gateway } = await stage(withNames);
      const answer = await supertest(gateway.server).get(path);
      expect(answer.status).toBe(200);
      expect(answer.headers['content-type']).toMatch(/^application\/json/);
      const { object, data } = answer.body as { object: string; data: Entry[] };
      expect(object).toBe('list');
      expect(data.map(({ id }) => id)).toEqual(names);
      for (const entry of data) {
        expect(entry).toEqual({
          id: entry.id,
          object: 'model',
          created: expect.any(Number),
          owned_by: 'llm-proxy',
        });
        expect(Number.isInteger(entry.created)).toBe(true);
        expect(Math.abs(entry.created - Date.now() / 1000)).toBeLessThan(3600);
      }
      expect(a.requests).toEqual([]);
    },
  );

  it.each([
    ['/v1/models/m', 'm'],
    ['/models/m', 'm'],
    ['/v1/models/org/model:7b', 'org/model:7b'],
    ['/v1/models/org%2Fmodel:7b', 'org/model:7b'],
    ['/v1/models/org%2Fmodel%3A7b', 'org/model:7b'],
    ['/v1/models/weird%20name', 'weird name'],
    ['/v1/models/%C3%BCn%C3%AFcode', 'ünïcode'],
    ['/v1/models/tr/', 'tr/'],
    ['/models/tr%2F', 'tr/'],
    ['/v1/models/m/', 'm'],
    ['/v1/models/x//y', 'x//y'],
  ])('gives one at %s', async (path, id) => {
    const { gateway } = await stage(withNames);
    const answer = await supertest(gateway.server).get(path);
    expect(answer.status).toBe(200);
    expect(answer.body).toMatchObject({ id, object: 'model', owned_by: 'llm-proxy' });
  });

  it.each(['/v1/models/none', '/v1/models/__proto__', '/v1/models/M', '/v1/models/%', '/v1/models/org'])(
    'answers 404 at %s',
    async (path) => {
      const { gateway } = await stage(withNames);
      const answer = await gateway.get(path);
      expect(answer.status).toBe(404);
      expect(answer.json).toMatchObject({ error: { code: 'model_not_found', param: 'model' } });
    },
  );

  it('answers HEAD without a body', async () => {
    const { gateway } = await stage(withNames);
    const connection = gateway.connect();
    const head = await connection.send({ method: 'HEAD', path: '/v1/models' }).end();
    expect(head.status).toBe(200);
    expect(head.text).toBe('');
    const get = await connection.send({ method: 'GET', path: '/v1/models' }).end();
    expect(get.status).toBe(200);
    expect(head.header('content-length')).toBe(String(get.size));
  });
});

describe('GET /healthz and /readyz', () => {
  it.each(['/healthz', '/readyz'])('%s answers 200', async (path) => {
    const { gateway } = await stage();
    expect((await supertest(gateway.server).get(path)).status).toBe(200);
    expect((await gateway.send({ method: 'HEAD', path }).end()).status).toBe(200);
  });
});
