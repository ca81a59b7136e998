// F: what most people would write. Parse the body, replace `model`, stringify, send with undici, pipe the answer.
import Fastify from 'fastify';
import { Agent, request } from 'undici';

const { UPSTREAM_URL, PORT, REAL_MODEL } = process.env;
const dispatcher = new Agent({ headersTimeout: 0, bodyTimeout: 0 });
const app = Fastify({ bodyLimit: 64 * 1024 * 1024 });

app.get('/healthz', async () => ({ status: 'ok' }));

app.post('/v1/chat/completions', async (incoming, reply) => {
  const body = incoming.body;
  body.model = REAL_MODEL;
  const answer = await request(`${UPSTREAM_URL}/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: 'Bearer bench-key' },
    body: JSON.stringify(body),
    dispatcher,
  });
  reply.code(answer.statusCode).header('content-type', answer.headers['content-type']);
  if (answer.headers['content-length'] !== undefined)
    reply.header('content-length', answer.headers['content-length']);
  return reply.send(answer.body);
});

process.on('SIGTERM', () => process.exit(0));
await app.listen({ port: Number(PORT), host: '127.0.0.1' });
