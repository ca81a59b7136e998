import { Logger } from '@nestjs/common';
import { describe, expect, it, vi } from 'vitest';
import { AuditPlugin } from './audit.js';
import { startGateway } from './gateway-for-tests.js';

describe('the audit plugin, given in code', () => {
  it('writes one line for a finished request', async () => {
    const log = vi.spyOn(Logger.prototype, 'log').mockImplementation(() => {});
    const origin = await startGateway(
      '[]',
      (response) => {
        response.setHeader('content-type', 'application/json');
        response.end('{"choices":[]}');
      },
      [AuditPlugin],
    );
    await fetch(`${origin}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-request-id': 'abc' },
      body: '{"model":"m","messages":[]}',
    });
    await vi.waitFor(() => {
      const lines = log.mock.calls.map(([line]) => String(line));
      expect(lines.filter((line) => line.startsWith('audit: '))).toEqual(['audit: abc m u=ok -> 200']);
    });
    log.mockRestore();
  });
});
