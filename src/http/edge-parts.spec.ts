import type { IncomingMessage } from 'node:http';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Cors } from './cors.js';
import type { EdgeContext } from './edge-context.js';
import { OpenRequests } from './open-requests.js';
import { requestIdOf } from './request-id.js';

describe('requestIdOf', () => {
  it('keeps a sane id of the client, of up to 128 characters', () => {
    for (const id of ['a', 'A.b_c:d-9', 'x'.repeat(128)]) expect(requestIdOf(id)).toBe(id);
  });

  it('makes a new one for anything else', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.constantFrom('', 'a\n', 'a b', 'x'.repeat(129), 'ü')), (text) => {
        const id = requestIdOf(text);
        expect(/^[A-Za-z0-9._:-]{1,128}$/.test(id)).toBe(true);
        if (/^[A-Za-z0-9._:-]{1,128}$/.test(text) && !text.endsWith('\n')) expect(id).toBe(text);
      }),
    );
    expect(requestIdOf(undefined)).not.toBe(requestIdOf(undefined));
    expect(requestIdOf(['a', 'b'])).toMatch(/^[0-9a-f-]{36}$/);
  });
});

describe('OpenRequests', () => {
  it('is idle at once where nothing is open', async () => {
    expect(await new OpenRequests().idle(0)).toBe(true);
  });

  it('waits for the last one, and gives up after its time', async () => {
    const open = new OpenRequests();
    const [first, second] = [{}, {}] as [EdgeContext, EdgeContext];
    open.enter(first);
    open.enter(second);
    expect(await open.idle(1)).toBe(false);
    const idle = open.idle(10_000);
    open.leave(first);
    expect(open.count).toBe(1);
    open.leave(second);
    expect(await idle).toBe(true);
  });
});

describe('Cors', () => {
  const request = (headers: Record<string, string>, method = 'POST') =>
    ({ headers, method }) as unknown as IncomingMessage;

  it('says nothing where it is off', () => {
    const cors = new Cors([]);
    expect(cors.off).toBe(true);
    expect(cors.headers(request({ origin: 'https://a' }))).toEqual([]);
    expect(
      cors.isPreflight(request({ origin: 'https://a', 'access-control-request-method': 'POST' }, 'OPTIONS')),
    ).toBe(false);
  });

  it('allows the origins of the file and no other', () => {
    const cors = new Cors(['https://a']);
    expect(cors.headers(request({ origin: 'https://a' })).slice(0, 2)).toEqual([
      'access-control-allow-origin',
      'https://a',
    ]);
    for (const origin of ['https://b', 'https://a.b', 'null', 'HTTPS://A']) {
      expect(cors.headers(request({ origin }))).toEqual(['vary', 'origin']);
    }
    expect(new Cors(['*']).headers(request({ origin: 'https://b' }))[1]).toBe('*');
  });

  it('knows a preflight', () => {
    const cors = new Cors(['*']);
    const asked = { origin: 'https://a', 'access-control-request-method': 'POST' };
    expect(cors.isPreflight(request(asked, 'OPTIONS'))).toBe(true);
    expect(cors.isPreflight(request(asked, 'POST'))).toBe(false);
    expect(cors.isPreflight(request({ origin: 'https://a' }, 'OPTIONS'))).toBe(false);
  });
});
