import { describe, expect, it } from 'vitest';
import type { AffinityService } from '../affinity/affinity.service.js';
import type { Place, Recollection } from '../affinity/affinity.registry.js';
import type { Candidate } from '../routing/candidate.js';
import type { Plan } from '../routing/plan.js';
import { Attachment, homeward } from './attachment.js';

const candidate = (id: string, tier = 1): Candidate =>
  ({ upstream: { id }, entry: { tier, weight: 1 } }) as unknown as Candidate;
const planOf = (...candidates: Candidate[]): Plan => ({ candidates, leftOut: [] }) as unknown as Plan;
const at = (upstream: string, key: string | null = null): Place => ({ upstream, key });
const order = (plan: Plan): string => plan.candidates.map(({ upstream }) => upstream.id).join('');

describe('homeward', () => {
  const plan = planOf(candidate('a'), candidate('b'), candidate('c'), candidate('d', 2), candidate('e', 2));

  it.each<[string | null, string, string | null]>([
    [null, 'abcde', null],
    ['a', 'abcde', 'a'],
    ['c', 'cabde', 'c'],
    ['e', 'abced', 'e'],
    ['gone', 'abcde', null],
  ])('a conversation of %s: %s', (place, expected, home) => {
    const found = homeward(plan, place === null ? null : at(place));
    expect(order(found.plan)).toBe(expected);
    expect(found.home?.upstream.id ?? null).toBe(home);
    expect(order(plan)).toBe('abcde');
  });

  it('an upstream with several entries is at home in the best of them', () => {
    const twice = planOf(candidate('a'), candidate('b'), candidate('a', 2), candidate('b', 2));
    expect(order(homeward(twice, at('b')).plan)).toBe('baab');
  });
});

describe('Attachment', () => {
  const remembered: [Recollection, Place][] = [];
  const affinity = {
    remember: (recollection: Recollection, place: Place) => void remembered.push([recollection, place]),
  } as unknown as AffinityService;
  const recollection: Recollection = { place: at('a', 'k'), scope: 's', digests: ['x'] };

  it('says who answered', () => {
    const attachment = new Attachment(affinity, recollection, candidate('a'), true);
    expect(attachment.keyAt(candidate('a'))).toBe('k');
    expect(attachment.keyAt(candidate('b'))).toBeNull();
    expect(attachment.outcomeOf(candidate('a'), 'k')).toBe('hit');
    expect(attachment.outcomeOf(candidate('a'), 'other')).toBe('moved');
    expect(attachment.outcomeOf(candidate('b'), 'k')).toBe('moved');
  });

  it('is new where nobody is known, or is no candidate any more', () => {
    const fresh = { ...recollection, place: null };
    expect(new Attachment(affinity, fresh, null, true).outcomeOf(candidate('a'), null)).toBe('new');
    expect(new Attachment(affinity, recollection, null, true).outcomeOf(candidate('a'), 'k')).toBe('new');
    expect(new Attachment(affinity, null, null, true).outcomeOf(candidate('a'), null)).toBe('new');
  });

  it('remembers who served it, where there is something to know it by', () => {
    new Attachment(affinity, null, null, true).served(candidate('a'), null);
    expect(remembered).toEqual([]);
    new Attachment(affinity, recollection, candidate('a'), true).served(candidate('b'), '#1');
    expect(remembered).toEqual([[recollection, at('b', '#1')]]);
  });
});
