import { maskSecret } from './mask.js';
import { shownValue } from './shown-value.js';

/** Keys and list positions from the root of the file to a value. */
export type ConfigPath = readonly (string | number)[];

/** `upstreams[2].provider`; a key that is no plain word stands as `patch["a b"]`. */
export function formatPath(path: ConfigPath): string {
  let text = '';
  for (const step of path) {
    if (typeof step === 'number') text += `[${step}]`;
    else if (!/^[\w-]+$/.test(step) || looksSecret(step)) text += `["${shownKey(step)}"]`;
    else text += text === '' ? step : `.${step}`;
  }
  return text;
}

/** A key of the file as a message shows it. Where a colon or a quote is missing, a secret can become a key. */
export function shownKey(key: string): string {
  return looksSecret(key) ? maskSecret(key) : shownValue(key);
}

/** Long and with digits: no key of ours is, most secrets are. */
function looksSecret(key: string): boolean {
  return key.length >= 16 && /\d/.test(key);
}
