import { shownValue } from '../../common/text/shown-value.js';
import { parseExpiry } from '../../common/time/expiry.js';
import { KeySection } from '../schema/key.section.js';
import type { ProviderSection } from '../schema/provider.section.js';
import type { ConfigPath } from './config-path.js';
import type { Findings } from './findings.js';
import type { Entries } from './read-entries.js';

const WARNED_AHEAD_MS = 14 * 86_400_000;

/** One key of a list as it will be used; `section` is null for a plain text. */
export interface ListedKey {
  readonly index: number;
  readonly id: string;
  /** Trimmed; '' = no key. */
  readonly value: string;
  readonly section: KeySection | null;
}

/** The keys of a list that can be read, each with the id that it has or gets by its place. */
export function listedKeys(keys: ProviderSection['keys']): ListedKey[] {
  return (keys ?? []).flatMap((item: unknown, index) => {
    const section = item instanceof KeySection ? item : null;
    const value = section === null ? item : section.value;
    if (typeof value !== 'string') return [];
    return [{ index, id: section?.id ?? `#${index + 1}`, value: value.trim(), section }];
  });
}

/** What one key alone cannot know: two ways to give keys at once, ids and keys given twice, keys that cannot be used. */
export function checkKeys({ providers }: Entries, findings: Findings, wallClockMs: number): void {
  for (const { index, section } of providers ?? []) {
    const path = ['providers', index, 'keys'];
    if (section.keys === undefined) {
      if (section.key_order !== undefined)
        findings.warning(['providers', index, 'key_order'], 'has no effect without "keys"');
      continue;
    }
    if (section.key !== undefined)
      findings.problem(path, '"key" and "keys" stand side by side; write only one of them');
    const keys = listedKeys(section.keys);
    checkIds(keys, path, findings);
    checkValues(keys, path, findings);
    for (const key of keys) checkExpiry(key, path, findings, wallClockMs);
    const usable = keys.filter(({ value, section: long }) => value !== '' && !isDead(long, wallClockMs));
    if (section.keys.length > 0 && usable.length === 0)
      findings.warning(path, 'holds no usable key: no upstream of this provider will be asked');
  }
}

function checkIds(keys: readonly ListedKey[], path: ConfigPath, findings: Findings): void {
  const seen = new Map<string, number>();
  for (const { index, id, value, section } of keys) {
    const at = section?.id === undefined ? [...path, index] : [...path, index, 'id'];
    const first = seen.get(id);
    if (id.trim() === value) findings.problem(at, 'the id must not be the key itself: ids are logged');
    else if (first === undefined) seen.set(id, index);
    else findings.problem(at, `"${shownValue(id)}" is already the id of keys[${first}]; choose another one`);
  }
}

function checkValues(keys: readonly ListedKey[], path: ConfigPath, findings: Findings): void {
  const seen = new Map<string, number>();
  for (const { index, value } of keys) {
    const first = seen.get(value);
    if (value === '') findings.warning([...path, index], 'is empty and therefore no key');
    else if (first === undefined) seen.set(value, index);
    else findings.warning([...path, index], `is the same key as keys[${first}]`);
  }
}

function checkExpiry(key: ListedKey, path: ConfigPath, findings: Findings, wallClockMs: number): void {
  const written = key.section?.expires;
  const at = written === undefined ? null : parseExpiry(written.trim());
  if (written === undefined || at === null || key.section?.disabled === true) return;
  const here = [...path, key.index, 'expires'];
  const leftMs = at - wallClockMs;
  if (leftMs <= 0) findings.warning(here, `the key expired (${written.trim()}) and is not used`);
  else if (leftMs <= WARNED_AHEAD_MS)
    findings.warning(here, `the key expires in ${daysOf(leftMs)} (${written.trim()})`);
}

function daysOf(ms: number): string {
  const days = Math.floor(ms / 86_400_000);
  if (days === 0) return 'less than a day';
  return days === 1 ? '1 day' : `${days} days`;
}

function isDead(section: KeySection | null, wallClockMs: number): boolean {
  if (section?.disabled === true) return true;
  const at = section?.expires === undefined ? null : parseExpiry(section.expires.trim());
  return at !== null && at <= wallClockMs;
}
