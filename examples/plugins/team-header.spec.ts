import { describe, expect, it } from 'vitest';
import { startGateway } from './gateway-for-tests.js';

const PLUGINS = '[{ module: ./team-header.js, config: { teams: [search, billing] } }]';

function ask(origin: string, headers: Record<string, string>): Promise<Response> {
  return fetch(`${origin}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: '{"model":"m","messages":[]}',
  });
}

describe('the team header in a running gateway', () => {
  let asked = 0;
  const start = () =>
    startGateway(PLUGINS, (response) => {
      asked++;
      response.setHeader('content-type', 'application/json');
      response.end('{"choices":[]}');
    });

  it.each([[{}], [{ 'x-llm-proxy-team': 'nobody' }]])(
    'refuses %o before any provider is asked',
    async (headers) => {
      const before = asked;
      const answer = await ask(await start(), headers);
      expect(answer.status).toBe(403);
      expect(await answer.json()).toMatchObject({
        error: { code: 'unknown_team', type: 'permission_error' },
      });
      expect(asked).toBe(before);
    },
  );

  it('lets a known team pass', async () => {
    const before = asked;
    const answer = await ask(await start(), { 'x-llm-proxy-team': 'search' });
    expect(answer.status).toBe(200);
    expect(asked).toBe(before + 1);
  });
});
