import { parseDuration } from '../../common/time/duration.js';
import type { DurationSetting } from '../gateway-config.js';

/** Null where the key is absent or its value was only warned about. */
export function durationOf(written: unknown): DurationSetting | null {
  const text = typeof written === 'string' ? written.trim() : '';
  const ms = parseDuration(text);
  return ms === null ? null : { text, ms };
}
