import 'reflect-metadata';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { setOwn } from '../loader/plain-object.js';
import { RootSection } from './root.section.js';
import { type SectionClass, settingsOf } from './setting.js';
import { failedByValidator, failedKeys } from './validate-section.js';

function sectionsFrom(Section: SectionClass, found = new Set<SectionClass>()): Set<SectionClass> {
  if (found.has(Section)) return found;
  found.add(Section);
  for (const { section: Inner } of settingsOf(Section).values())
    if (Inner !== undefined) sectionsFrom(Inner, found);
  return found;
}

const anything = fc.oneof(
  fc.jsonValue({ maxDepth: 2 }),
  fc.constantFrom(undefined, null, '', 'a', 1, 0, -1, true, [], {}, ['a'], 'P1M', 10n, NaN),
);

describe('failedKeys', () => {
  it('knows every section', () => expect(sectionsFrom(RootSection).size).toBeGreaterThan(15));

  it.each([...sectionsFrom(RootSection)].map((Section) => [Section.name, Section] as const))(
    'finds in %s what class-validator finds, whether anything is wrong or not',
    (_, Section) => {
      const keys = [...settingsOf(Section).keys()];
      fc.assert(
        fc.property(
          fc.dictionary(fc.constantFrom('id', ...keys), anything),
          fc.boolean(),
          (values, examples) => {
            const section = new Section();
            if (examples)
              for (const [key, { example }] of settingsOf(Section))
                setOwn(section as Record<string, unknown>, key, example);
            else
              for (const key of Object.keys(values))
                setOwn(section as Record<string, unknown>, key, values[key]);
            expect(failedKeys(section, Section)).toEqual(failedByValidator(section));
          },
        ),
        { numRuns: 60 },
      );
    },
  );
});
