import { headerText } from './plugin-headers.js';

/** The headers that stages set for one attempt. Refuses at once what cannot be sent, so that the stage that set it is known. */
export class AttemptHeaders extends Map<string, string> {
  override set(name: string, value: string): this {
    return super.set(name, headerText(name, value));
  }
}
