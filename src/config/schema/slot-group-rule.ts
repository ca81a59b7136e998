import { isPlainObject } from '../loader/plain-object.js';
import { count } from './number-rules.js';
import { kindOf, type Rule, type RuleFinding, show } from './rule.js';
import { duration } from './tolerant-rules.js';

const KEYS = ['limit', 'settle'];
const WANTED = 'must be a whole number ≥ 1, or { limit: 1, settle: PT200MS }';

/** A mapping from ids to a limit, or to a limit with a pause. A pause that is no duration is only warned about. */
export const slotGroups: Rule = {
  name: 'slotGroups',
  schema: {
    type: 'object',
    additionalProperties: {
      anyOf: [
        count.schema,
        {
          type: 'object',
          additionalProperties: false,
          properties: { limit: count.schema, settle: duration.schema },
          required: ['limit'],
        },
      ],
    },
  },
  check: (value) => {
    if (!isPlainObject(value))
      return [{ at: [], message: `must be a mapping of ids to limits, not ${kindOf(value)}` }];
    return Object.entries(value).flatMap(([id, group]) => {
      if (id.trim() === '') return [{ at: [id], message: 'an id must not be empty' }];
      return groupFindings(group).map(({ at, message }) => ({ at: [id, ...at], message }));
    });
  },
};

function groupFindings(group: unknown): RuleFinding[] {
  if (!isPlainObject(group)) {
    return count.check(group).length === 0 ? [] : [{ at: [], message: `${WANTED}, not ${show(group)}` }];
  }
  const found: RuleFinding[] = Object.keys(group)
    .filter((key) => !KEYS.includes(key))
    .map((key) => ({ at: [key], message: `unknown key; known here: ${KEYS.join(', ')}` }));
  const { limit } = group;
  if (limit === undefined || limit === null) {
    found.push({ at: ['limit'], message: 'the required key "limit" is missing, for example limit: 1' });
  } else {
    found.push(...count.check(limit).map(({ message }) => ({ at: ['limit'], message })));
  }
  return found;
}
