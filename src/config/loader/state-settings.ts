import type { RedisConfig } from '../gateway-config.js';
import type { StateSection } from '../schema/state.section.js';
import { durationOf } from './duration-setting.js';
import type { Findings } from './findings.js';

const PREFIX = 'llm-proxy:';
const TIMEOUT_MS = 250;
/** A wait that long for each claim is an outage. */
const LONGEST_TIMEOUT_MS = 5000;

/** What the keys of `state` mean together. */
export function checkState(section: StateSection, findings: Findings): void {
  if (section.store === 'redis' && section.url === undefined && !findings.has(['state', 'url']))
    findings.problem(
      ['state', 'url'],
      'store: redis needs the url of a Redis, for example redis://redis:6379',
    );
  const timeout = durationOf(section.timeout);
  if (timeout !== null && (timeout.ms < 1 || timeout.ms > LONGEST_TIMEOUT_MS))
    findings.problem(['state', 'timeout'], `must be longer than PT0S and at most PT5S, not ${timeout.text}`);
  if (section.store === 'redis') return;
  for (const key of ['url', 'prefix', 'on_error', 'timeout'] as const) {
    if (section[key] !== undefined) findings.warning(['state', key], 'has no meaning without store: redis');
  }
}

/** Null where everything stays in this process. */
export function redisOf({ on_error, prefix, store, timeout, url }: StateSection): RedisConfig | null {
  if (store !== 'redis' || url === undefined) return null;
  return {
    url: url.trim(),
    prefix: prefix ?? PREFIX,
    onError: on_error ?? 'local',
    timeoutMs: durationOf(timeout)?.ms ?? TIMEOUT_MS,
  };
}
