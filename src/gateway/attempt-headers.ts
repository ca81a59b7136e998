import { HEADER_NAME, MADE_BY_US, NOT_IN_HEADER_VALUE } from '../common/http/header-syntax.js';
import { PluginMistake } from '../common/errors/plugin-mistake.js';
import { printable } from '../common/text/mask.js';

/**
 * The headers that stages set for one attempt. Refuses at once what HTTP cannot carry, so that the stage that set it is
 * known; a value is never shown.
 */
export class AttemptHeaders extends Map<string, string> {
  override set(name: string, value: string): this {
    // Plugins in JavaScript may set anything.
    const given: unknown = value;
    const text = typeof given === 'number' ? String(given) : given;
    if (typeof name !== 'string' || !HEADER_NAME.test(name))
      throw new PluginMistake(`${shown(name)} is no name of a header`);
    if (MADE_BY_US.has(name.toLowerCase()))
      throw new PluginMistake(`the header ${shown(name)} is made by the service itself`);
    if (typeof text !== 'string') throw new PluginMistake(`the header ${shown(name)} was set to no text`);
    if (NOT_IN_HEADER_VALUE.test(text))
      throw new PluginMistake(`the header ${shown(name)} was set to a text that HTTP cannot carry`);
    return super.set(name, text);
  }
}

function shown(name: unknown): string {
  return typeof name === 'string' ? `"${printable(name, 100)}"` : `a ${typeof name}`;
}
