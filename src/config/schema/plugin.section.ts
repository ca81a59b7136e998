import type { PlainObject } from '../loader/plain-object.js';
import { Setting } from './setting.js';
import { jsonObject } from './structure-rules.js';
import { text } from './text-rules.js';

/** One of `plugins:`: a module of one's own. */
export class PluginSection {
  @Setting({
    rule: text,
    required: true,
    example: './plugins/audit.js',
    description: 'A package name, or a path relative to this file.',
  })
  module?: string;

  @Setting({
    rule: jsonObject,
    example: { level: 'full' },
    description: 'Settings of the plugin; it checks them itself.',
  })
  config?: PlainObject;
}
