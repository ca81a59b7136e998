import { isPlainObject } from '../loader/plain-object.js';
import { kindOf, show, type Rule, type RuleFinding } from './rule.js';
import type { SectionClass } from './setting.js';
import { text } from './text-rules.js';

/** A mapping that becomes JSON: of a patch, or of a plugin. */
export const jsonObject: Rule = {
  name: 'jsonObject',
  schema: { type: 'object' },
  check: (value) => {
    if (!isPlainObject(value)) return [{ at: [], message: `must be a mapping, not ${kindOf(value)}` }];
    const found: RuleFinding[] = [];
    findNonJson(value, [], found);
    return found;
  },
};

function findNonJson(value: unknown, at: readonly (string | number)[], found: RuleFinding[]): void {
  if (typeof value === 'number' && !Number.isFinite(value)) {
    found.push({ at, message: `${value} is no JSON number; quote it if a text is meant` });
  } else if (Array.isArray(value)) {
    value.forEach((item, i) => findNonJson(item, [...at, i], found));
  } else if (isPlainObject(value)) {
    for (const key of Object.keys(value)) findNonJson(value[key], [...at, key], found);
  }
}

/** One nested section; its own keys are checked when it is read. */
export function section(Section: SectionClass): Rule {
  return {
    name: 'section',
    schema: { $ref: `#/$defs/${Section.name}` },
    check: (value) =>
      isPlainObject(value) ? [] : [{ at: [], message: `must be a mapping, not ${kindOf(value)}` }],
  };
}

/** A nested section, or one of these words. */
export function wordOrSection(words: readonly string[], Section: SectionClass): Rule {
  return {
    name: 'section',
    schema: { anyOf: [{ enum: words }, { $ref: `#/$defs/${Section.name}` }] },
    check: (value) => {
      if (isPlainObject(value) || (typeof value === 'string' && words.includes(value))) return [];
      const given = typeof value === 'string' ? show(value) : kindOf(value);
      return [{ at: [], message: `must be ${words.join(', ')} or a mapping, not ${given}` }];
    },
  };
}

/** A list of nested sections; `what` names one of them. */
export function sections(Section: SectionClass, what: string, atLeastOne: boolean): Rule {
  return {
    name: 'sections',
    schema: {
      type: 'array',
      items: { $ref: `#/$defs/${Section.name}` },
      ...(atLeastOne ? { minItems: 1 } : {}),
    },
    check: (value) => {
      if (!Array.isArray(value))
        return [{ at: [], message: `must be a list of ${what}s ("- …"), not ${kindOf(value)}` }];
      if (atLeastOne && value.length === 0) return [{ at: [], message: `must hold at least one ${what}` }];
      return value.flatMap((item: unknown, i) =>
        isPlainObject(item)
          ? []
          : [{ at: [i], message: `must be a mapping (one ${what}), not ${kindOf(item)}` }],
      );
    },
  };
}

/** A list whose items are texts, or nested sections with more to say; at least one. `what` names several of them. */
export function textsOrSections(Section: SectionClass, what: string): Rule {
  return {
    name: 'textsOrSections',
    schema: {
      type: 'array',
      items: { anyOf: [text.schema, { $ref: `#/$defs/${Section.name}` }] },
      minItems: 1,
    },
    check: (value) => {
      if (!Array.isArray(value))
        return [{ at: [], message: `must be a list of ${what}, not ${kindOf(value)}` }];
      if (value.length === 0) return [{ at: [], message: `must hold at least one of the ${what}` }];
      return value.flatMap((item: unknown, i) =>
        isPlainObject(item) ? [] : text.check(item).map(({ message }) => ({ at: [i], message })),
      );
    },
  };
}
