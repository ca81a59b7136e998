import { Setting } from './setting.js';
import { text } from './text-rules.js';

/** One of a model's `upstreams:` in its long form; a plain id is the same with nothing but `upstream`. */
export class ModelEntrySection {
  @Setting({ rule: text, required: true, example: 'local-qwen', description: 'Id of the upstream.' })
  upstream?: string;
}
