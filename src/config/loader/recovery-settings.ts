import type { BackoffSetting, ProbeConfig } from '../gateway-config.js';
import { BackoffSection } from '../schema/backoff.section.js';
import type { ProbeSection } from '../schema/probe.section.js';
import { durationOf } from './duration-setting.js';

const DEFAULT_BASE_MS = 1000;
const DEFAULT_PROBE: ProbeConfig = { mode: 'completion', path: '/health', expect: [200], wake: 'full' };

/** Short or long form; null where the key is absent or its value was only warned about. */
export function backoffOf(written: unknown): BackoffSetting | null {
  if (!(written instanceof BackoffSection)) {
    const cap = durationOf(written);
    return cap === null ? null : { ...cap, baseMs: DEFAULT_BASE_MS };
  }
  const base = durationOf(written.base);
  const cap = durationOf(written.cap);
  if (cap === null) return null;
  if (base === null || base.ms === 0) return { ...cap, baseMs: DEFAULT_BASE_MS };
  return { text: `${cap.text}(base ${base.text})`, ms: cap.ms, baseMs: base.ms };
}

/** Each key by itself: upstream → provider → default. */
export function probeOf(own: ProbeSection | undefined, inherited: ProbeSection | undefined): ProbeConfig {
  const expect = own?.expect ?? inherited?.expect;
  return {
    mode: own?.mode ?? inherited?.mode ?? DEFAULT_PROBE.mode,
    path: own?.path ?? inherited?.path ?? DEFAULT_PROBE.path,
    expect: expect === undefined ? DEFAULT_PROBE.expect : [expect].flat(),
    wake: own?.wake ?? inherited?.wake ?? DEFAULT_PROBE.wake,
  };
}
