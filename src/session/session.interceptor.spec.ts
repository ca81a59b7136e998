import { describe, expect, it } from 'vitest';
import { JsonDocument } from '../common/json/json-document.js';
import type { Attempt, Exchange } from '../contracts/exchange.js';
import { SessionInterceptor } from './session.interceptor.js';
import { SessionRegistry } from './session.registry.js';

const registry = (): SessionRegistry => new SessionRegistry({ now: () => 0 });
const exchange = (): Exchange => ({ notes: new Map() }) as unknown as Exchange;

function header(
  interceptor: SessionInterceptor,
  body: string,
  options: { probe?: boolean; exchange?: Exchange; sessionHeader?: string | null } = {},
): string | undefined {
  const headers = new Map<string, string>();
  const { probe = false, sessionHeader = 'x-session' } = options;
  void interceptor.onAttempt({
    exchange: options.exchange ?? exchange(),
    upstream: { provider: { sessionHeader } },
    body: JsonDocument.parse(Buffer.from(body)),
    headers,
    probe,
  } as unknown as Attempt);
  return headers.get('x-session');
}

const body = (content: string): string => `{"messages": [{"role":"user","content":"${content}"}]}`;

describe('SessionInterceptor', () => {
  it('sets the header from the history, where the provider wants one', () => {
    const interceptor = new SessionInterceptor(registry());
    expect(header(interceptor, body('a'))).toMatch(/^[0-9a-f]{64}$/);
    expect(header(interceptor, body('a'), { sessionHeader: null })).toBeUndefined();
    for (const text of [
      '{}',
      '{"messages":[]}',
      '{"messages":"x"}',
      '{"messages":{}}',
      '{"messages":null}',
    ]) {
      expect(header(interceptor, text)).toBeUndefined();
    }
  });

  it('lets probes leave no trace', () => {
    const sessions = registry();
    const interceptor = new SessionInterceptor(sessions);
    const id = header(interceptor, body('a'), { probe: true });
    expect(sessions.size).toBe(0);
    expect(header(interceptor, body('a'))).toBe(id);
  });

  it('hashes one history once for all attempts, and another one anew', () => {
    const sessions = registry();
    let calls = 0;
    const counting = {
      resolve: (messages: Buffer) => (calls++, sessions.resolve(messages)),
    } as SessionRegistry;
    const interceptor = new SessionInterceptor(counting);
    const one = exchange();
    const id = header(interceptor, body('a'), { exchange: one });
    expect([header(interceptor, body('a'), { exchange: one }), calls]).toEqual([id, 1]);
    expect(header(interceptor, body('patched'), { exchange: one })).not.toBe(id);
    expect([calls, sessions.size]).toEqual([2, 2]);
  });
});
