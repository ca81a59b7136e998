import { describe, expect, it } from 'vitest';
import type { ProviderConfig } from '../config/gateway-config.js';
import { bodyMask, headerMask, secretsOf } from './secret-mask.js';

const KEY = 'sk-$&-0123456789-wxyz';

describe('secretsOf', () => {
  it('names the key and the fixed headers that look like credentials, bare of their scheme', () => {
    const headers = [
      ['authorization', 'Bearer header-token-1234'],
      ['x-api-key', 'header-key-1234'],
      ['x-title', 'no secret at all'],
    ] as const;
    expect(secretsOf({ key: KEY, headers } as unknown as ProviderConfig)).toEqual([
      KEY,
      'header-token-1234',
      'header-key-1234',
    ]);
  });

  it('leaves placeholders alone: masking them would garble answers', () => {
    expect(secretsOf({ key: 'none', headers: [] } as unknown as ProviderConfig)).toEqual([]);
    expect(secretsOf({ key: '', headers: [] } as unknown as ProviderConfig)).toEqual([]);
  });
});

describe('headerMask', () => {
  it('masks every copy, in ASCII', () => {
    const masked = headerMask([KEY])(`a ${KEY} b ${KEY}`);
    expect(masked).not.toContain('0123456789');
    expect(masked).toMatch(/^[\x20-\x7e]+$/);
    expect(headerMask([KEY])('nothing')).toBe('nothing');
  });

  it('masks the longer one of two that begin alike', () => {
    const long = `${KEY}-longer`;
    expect(headerMask([KEY, long])(`x ${long}`)).not.toContain('longer');
  });
});

describe('bodyMask', () => {
  it('masks every copy and keeps every other byte', () => {
    const around = Buffer.from([0xff, 0x00, 0xc3, 0x28]);
    const masked = bodyMask([KEY])(
      Buffer.concat([around, Buffer.from(KEY), around, Buffer.from(KEY), around]),
    );
    expect(masked.includes('0123456789')).toBe(false);
    expect(masked.subarray(0, 4).equals(around)).toBe(true);
    expect(masked.subarray(-4).equals(around)).toBe(true);
  });

  it('gives the very same buffer where there is nothing to mask', () => {
    const body = Buffer.from('nothing');
    expect(bodyMask([KEY])(body)).toBe(body);
  });

  it('masks a key beyond ASCII, and the longer one of two that begin alike', () => {
    expect(
      bodyMask(['schlüssel-0123456789'])(Buffer.from('x schlüssel-0123456789 y')).toString(),
    ).not.toContain('01234');
    const long = `${KEY}-longer`;
    expect(bodyMask([KEY, long])(Buffer.from(long)).toString()).not.toContain('longer');
  });
});
