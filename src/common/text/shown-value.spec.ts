import { describe, expect, it } from 'vitest';
import { maskKeys, shownValue } from './shown-value.js';

describe('shownValue', () => {
  it.each([
    ['sk-proj-AbC123dEf456GhI789jKl', 'sk-…9jKl'],
    ['gsk_AbC123dEf456GhI789jKl', 'gsk…9jKl'],
    ['sk-SUPERSECRETVALUE', 'sk-…ALUE'],
    ['AIzaSyA-abcdefgh_ijklmnopq', 'AIz…nopq'],
    ['AKIAIOSFODNNEXAMPLEX', 'AKI…PLEX'],
    ['eyJhbGciOi.eyJzdWIiOi.c2lnbmF0', 'eyJ…bmF0'],
    ['0123456789abcdef0123456789abcdef', '012…cdef'],
    ['3f2c9a10-1b2c-4d5e-8f90-a1b2c3d4e5f6', '3f2…e5f6'],
    ['abc/DEF123ghi456jkl789mno+q/r==', 'abc…/r=='],
    ['Bearer sk-abcdefgh12345678', 'Bearer sk-…5678'],
    ['/etc/certs/sk-abcdefgh12345678', '/etc/certs/sk-…5678'],
    ['https://host/sk-abcdefgh12345678/v1', 'https://host/sk-…5678/v1'],
  ])('masks what looks like a key: %s', (value, shown) => {
    expect(shownValue(value)).toBe(shown);
  });

  it.each([
    'claude-3-5-sonnet-20241022',
    'Qwen2.5-Coder-32B-Instruct-GPTQ-Int8',
    'meta-llama/Llama-3.3-70B-Instruct-Turbo-Free',
    'arn:aws:bedrock:us-east-1:123456789012:model/abc123def456',
    'https://llm-7.eu-central-1.internal.example:8443/v1',
    '/etc/ssl/certs/2027-01-31/internal-root-ca-2.pem',
    'AZURE_OPENAI_API_KEY_2',
    'internationalisation',
    'round-robin-of-the-7-best',
    '99999999999999999999',
    '2027-01-31T12:00:00Z',
    'task-force-of-the-north',
  ])('quotes other texts whole: %s', (value) => {
    expect(shownValue(value)).toBe(value);
  });

  it('leaves nothing of a key where the text is cut', () => {
    expect(shownValue(`${'a '.repeat(28)}sk-abcdefgh12345678`, 60)).toBe(`${'a '.repeat(28)}sk-……`);
  });

  it('masks nothing twice', () => {
    const once = maskKeys('key sk-proj-AbC123dEf456GhI789jKl');
    expect(maskKeys(once)).toBe(once);
  });
});
