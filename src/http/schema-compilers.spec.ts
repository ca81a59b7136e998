import Fastify from 'fastify';
import { describe, expect, it } from 'vitest';
import { schemaCompilers } from './schema-compilers.js';

const schema = {
  body: { type: 'object', required: ['count'], properties: { count: { type: 'integer' } } },
  response: { 200: { type: 'object', properties: { shown: { type: 'string' } } } },
};

function server() {
  const fastify = Fastify({ schemaController: { compilersFactory: schemaCompilers } });
  fastify.post('/counted', { schema }, () => ({ shown: 'yes', hidden: 'no' }));
  fastify.get('/plain', () => ({ shown: 'yes', hidden: 'no' }));
  return fastify;
}

describe('compilers of route schemas', () => {
  it('checks a body by its schema', async () => {
    const answer = await server().inject({ method: 'POST', url: '/counted', body: { count: 'many' } });
    expect(answer.statusCode).toBe(400);
    expect(answer.json()).toMatchObject({
      code: 'FST_ERR_VALIDATION',
      message: 'body/count must be integer',
    });
  });

  it('writes an answer by its schema', async () => {
    const answer = await server().inject({ method: 'POST', url: '/counted', body: { count: 3 } });
    expect(answer.body).toBe('{"shown":"yes"}');
  });

  it('leaves a route without a schema as it is', async () => {
    const answer = await server().inject('/plain');
    expect(answer.json()).toEqual({ shown: 'yes', hidden: 'no' });
  });
});
