import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { startGateway } from './gateway-for-tests.js';

const PLUGINS = `
  - module: ./team-budget.js
    config:
      per_day: 1
      prices: [{ upstream: u, input: 1, output: 10 }]
consumers:
${['red', 'blue'].map((team) => `  - { id: ${team}, labels: { team: ${team} }, keys: [{ id: k, sha256: '${digest(team)}' }] }`).join('\n')}`;

function digest(key: string): string {
  return createHash('sha256').update(key).digest('hex');
}

async function ask(origin: string, team: string): Promise<Response> {
  return await fetch(`${origin}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${team}` },
    body: '{"model":"m","messages":[]}',
  });
}

describe('the budget of a team in a running gateway', () => {
  const start = () =>
    startGateway(PLUGINS, (response) => {
      response.setHeader('content-type', 'application/json');
      // Costs 0.6 of the day's 1.0.
      response.end('{"choices":[],"usage":{"prompt_tokens":100000,"completion_tokens":50000}}');
    });

  it('refuses a team that has spent its money, and no other', async () => {
    const origin = await start();
    expect((await ask(origin, 'red')).status).toBe(200);
    expect((await ask(origin, 'red')).status).toBe(200);
    const refused = await ask(origin, 'red');
    expect(refused.status).toBe(429);
    expect(await refused.json()).toMatchObject({ error: { code: 'team_budget_spent' } });
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    expect((await ask(origin, 'blue')).status).toBe(200);
  });
});
