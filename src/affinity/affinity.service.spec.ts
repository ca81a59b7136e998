import { describe, expect, it } from 'vitest';
import { JsonDocument } from '../common/json/json-document.js';
import type { Exchange } from '../contracts/exchange.js';
import { AffinityRegistry } from './affinity.registry.js';
import { AffinityService } from './affinity.service.js';

const MESSAGES = [{ role: 'user', content: 'q' }];

function exchange(body: object, consumer: string | null = null, model = 'm'): Exchange {
  return {
    body: JsonDocument.parse(Buffer.from(JSON.stringify(body))),
    consumer: consumer === null ? null : { id: consumer },
    model: { name: model },
  } as unknown as Exchange;
}

describe('AffinityService', () => {
  it('knows a conversation by consumer, model, tools, system and messages', () => {
    const service = new AffinityService(new AffinityRegistry({ now: () => 0 }));
    const first = exchange({ messages: MESSAGES, tools: [{ name: 'f' }], system: 'S' }, 'c');
    const recollection = service.recall(first);
    if (recollection === null) throw new Error('it has messages');
    service.remember(recollection, { upstream: 'u', key: null });
    const where = (one: Exchange) => service.recall(one)?.place?.upstream ?? null;
    const messages = [...MESSAGES, { role: 'assistant', content: 'a' }];
    const tools = [{ name: 'f' }];
    expect(where(exchange({ system: 'S', tools, messages, temperature: 1 }, 'c'))).toBe('u');
    expect(where(exchange({ system: 'S', tools, messages }, 'd'))).toBeNull();
    expect(where(exchange({ system: 'S', tools, messages }))).toBeNull();
    expect(where(exchange({ system: 'S', tools, messages }, 'c', 'n'))).toBeNull();
    expect(where(exchange({ system: 'T', tools, messages }, 'c'))).toBeNull();
    expect(where(exchange({ system: 'S', messages }, 'c'))).toBeNull();
  });

  it.each([{}, { messages: null }, { messages: 'none' }, { messages: {} }])(
    'has nothing to know %o by',
    (body) => {
      const service = new AffinityService(new AffinityRegistry({ now: () => 0 }));
      expect(service.recall(exchange(body))).toBeNull();
    },
  );
});
