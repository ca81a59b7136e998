import { describe, expect, it } from 'vitest';
import { hasForeignLine } from './foreign-line.js';
import { SseEvent } from './sse-event.js';

const isForeign = (raw: string): boolean => hasForeignLine(new SseEvent(Buffer.from(raw)));

describe('hasForeignLine', () => {
  it.each([
    '{"error":{"message":"overloaded"}}',
    '<html>502 Bad Gateway</html>\r\n',
    'Internal Server Error\n\n',
    ': wait\n{"id":"c"}\n\n',
    'event: x\rnonsense\r\r',
    '\uFEFF{"id":"c"}',
    'databases\n\n',
    '{"error":{}}\ndata: [DONE]\n\n',
    `{"id":"${'x'.repeat(70_000)}"}`,
  ])('of %j: yes', (raw) => expect(isForeign(raw)).toBe(true));

  it.each([
    '',
    '\n',
    '\r\n\r\n',
    ': wait\n\n',
    ':\n',
    'event: ping\n\n',
    'id\n\n',
    'retry: 5\r\n\r\n',
    '\uFEFF: wait\n\n',
    'data\n\n',
    'data: x\nnonsense\n\n',
    `: ${'x'.repeat(70_000)}\n\n`,
    `: ${'x'.repeat(65_530)}\nevent: x\n\n`,
  ])('of %j: no', (raw) => expect(isForeign(raw)).toBe(false));
});
