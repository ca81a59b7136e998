import { maskSecret, printable } from './mask.js';

/** How keys of providers, clouds and code hosts begin, and tokens in three parts. */
const PREFIXED =
  /^(?:(?:sk|pk|rk|xai|lp|nvapi|pplx|csk|tgp|glpat|gsk|hf|r8|fw|ghp|gho|ghs|github_pat|xox[a-z])[-_](?=.{12})|AIza|AKIA|ya29\.|eyJ(?=.{16}))/;
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
/** Names of models, hosts and files have digits too, but between dashes, dots and short words. */
const LONG_WORD = /[A-Za-z0-9]{16,}/g;

/** A text of the configuration as a message quotes it: on one line, bounded, and without anything that looks like a key. */
export function shownValue(text: string, limit = 60): string {
  return printable(maskKeys(text), limit);
}

/** The text with each part masked that looks like a key, which may have been pasted into the wrong place. */
export function maskKeys(text: string): string {
  // In a path or a url each step is a part of its own; elsewhere a slash can belong to a key.
  const parts = /^[./~]|:\/\//.test(text) ? /[\w.+~=-]{16,}/g : /[\w.+~=/-]{16,}/g;
  return text.replace(parts, (part) => (looksLikeKey(part) ? maskSecret(part) : part));
}

function looksLikeKey(part: string): boolean {
  if (PREFIXED.test(part) || UUID.test(part)) return true;
  return (part.match(LONG_WORD) ?? []).some((word) => /[A-Za-z]/.test(word) && /\d.*\d/.test(word));
}
