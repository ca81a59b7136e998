import type { PlainObject } from '../loader/plain-object.js';
import { ModelEntrySection } from './model-entry.section.js';
import { Setting } from './setting.js';
import { jsonObject, textsOrSections } from './structure-rules.js';
import { text } from './text-rules.js';

/** One of `models:`: a name that clients ask for. */
export class ModelSection {
  @Setting({
    rule: text,
    required: true,
    example: 'my-gpt',
    description: 'Unique name; what clients ask for.',
  })
  name?: string;

  @Setting({
    rule: textsOrSections(ModelEntrySection, 'upstream ids'),
    section: ModelEntrySection,
    required: true,
    example: ['local-qwen', 'routerai-gpt4o'],
    description: 'Ids of upstreams, at least one, none twice; the order is the priority.',
  })
  upstreams?: (string | ModelEntrySection)[];

  @Setting({
    rule: jsonObject,
    example: { reasoning: { enabled: false } },
    description: 'Merged into the body last.',
  })
  patch?: PlainObject;
}
