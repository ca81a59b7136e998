import { isPlainObject } from '../loader/plain-object.js';
import { show, type Rule, type RuleFinding } from './rule.js';
import { jsonObject } from './structure-rules.js';

const MERGED = ['message', 'body'] as const;
const WANTED = 'must be true, false or a mapping with "message" and "body"';

/** Whether, and how, an upstream goes on with a text that another one began. */
export const prefill: Rule = {
  name: 'prefill',
  schema: {
    anyOf: [
      { type: 'boolean' },
      {
        type: 'object',
        properties: { message: jsonObject.schema, body: jsonObject.schema },
        additionalProperties: false,
      },
    ],
  },
  check: (value) => {
    if (typeof value === 'boolean') return [];
    if (!isPlainObject(value)) return [{ at: [], message: `${WANTED}, not ${show(value)}` }];
    return Object.keys(value).flatMap((key): RuleFinding[] => {
      if (!(MERGED as readonly string[]).includes(key))
        return [{ at: [key], message: `is unknown here; ${WANTED}` }];
      return jsonObject
        .check(value[key])
        .map(({ at, message }): RuleFinding => ({ at: [key, ...at], message }));
    });
  },
};
