import { PluginMistake } from '../common/errors/plugin-mistake.js';
import { HEADER_NAME, MADE_BY_US, NOT_IN_HEADER_VALUE } from '../common/http/header-syntax.js';
import { printable } from '../common/text/mask.js';

/**
 * The text of a header that a plugin sets. Plugins in JavaScript may set anything; a value is never shown.
 * @throws PluginMistake for what HTTP cannot carry, and for a header that the service makes itself
 */
export function headerText(name: unknown, value: unknown, ours: ReadonlySet<string> = MADE_BY_US): string {
  const text = typeof value === 'number' ? String(value) : value;
  if (typeof name !== 'string' || !HEADER_NAME.test(name))
    throw new PluginMistake(`${shown(name)} is no name of a header`);
  if (ours.has(name.toLowerCase()))
    throw new PluginMistake(`the header ${shown(name)} is made by the service itself`);
  if (typeof text !== 'string') throw new PluginMistake(`the header ${shown(name)} was set to no text`);
  if (NOT_IN_HEADER_VALUE.test(text))
    throw new PluginMistake(`the header ${shown(name)} was set to a text that HTTP cannot carry`);
  return text;
}

function shown(name: unknown): string {
  return typeof name === 'string' ? `"${printable(name, 100)}"` : `a ${typeof name}`;
}
