import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { KnownSecrets } from './known-secrets.js';

function mask(secrets: readonly string[], message: string): string {
  const known = new KnownSecrets();
  for (const secret of secrets) known.add(secret);
  return known.mask(message);
}

describe('KnownSecrets', () => {
  it.each([
    [['correct horse battery'], 'not "correct horse battery"', 'not "cor…tery"'],
    [
      ['correct horse battery'],
      'cannot read /etc/correct horse battery.pem',
      'cannot read /etc/cor…tery.pem',
    ],
    [['hunter-two', 'hunter-two-and-more'], 'not "hunter-two-and-more"', 'not "hun…more"'],
    [['correct horse battery'], 'not "correct hors…"', 'not "cor…tery…"'],
    [['correct horse battery'], 'not "correct horses"', 'not "correct horses"'],
    [['required'], 'the required key: not "required"', 'the required key: not "…"'],
    [['none'], 'not "none"', 'not "none"'],
    [[], 'not "sk-proj-AbC123dEf456GhI789jKl"', 'not "sk-…9jKl"'],
  ])('%j in %s', (secrets, message, masked) => {
    expect(mask(secrets, message)).toBe(masked);
  });

  it('leaves none behind, wherever it stands', () => {
    const secret = fc.string({ minLength: 12, maxLength: 40 }).filter((text) => text.trim().length >= 12);
    const around = fc.string({ maxLength: 60 }).filter((text) => !text.includes('"'));
    fc.assert(
      fc.property(secret, around, around, (hidden, before, after) => {
        fc.pre(!hidden.includes('"') && !hidden.includes('…'));
        expect(mask([hidden, 'another secret'], `${before} "${hidden}" ${after}`)).not.toContain(
          hidden.trim(),
        );
      }),
    );
  });
});
