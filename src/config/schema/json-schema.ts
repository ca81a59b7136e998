import { RootSection } from './root.section.js';
import type { JsonSchema } from './rule.js';
import { settingsOf, type SectionClass, type SettingOptions } from './setting.js';

/** The JSON Schema (draft 2020-12) of the file, from the classes that validate it. */
export function configJsonSchema(): JsonSchema {
  const definitions: Record<string, JsonSchema> = {};
  define(RootSection, definitions);
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Configuration of llm-proxy',
    ...objectSchema(RootSection),
    $defs: definitions,
  };
}

/** The sections inside a section, each once. */
function define(section: SectionClass, definitions: Record<string, JsonSchema>): void {
  for (const { section: inner } of settingsOf(section).values()) {
    if (inner === undefined || Object.hasOwn(definitions, inner.name)) continue;
    definitions[inner.name] = objectSchema(inner);
    define(inner, definitions);
  }
}

/** As it stands in the shipped file. */
export function configJsonSchemaText(): string {
  return `${print(configJsonSchema(), '')}\n`;
}

/** Like JSON.stringify with two spaces, but lists of plain values stand on one line, as the formatter wants them. */
function print(value: unknown, indent: string): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const inner = `${indent}  `;
  if (Array.isArray(value)) {
    const items = value.map((item) => print(item, inner));
    const plain = value.every((item) => typeof item !== 'object' || item === null);
    return plain ? `[${items.join(', ')}]` : `[\n${inner}${items.join(`,\n${inner}`)}\n${indent}]`;
  }
  const members = Object.entries(value).map(
    ([key, member]) => `${JSON.stringify(key)}: ${print(member, inner)}`,
  );
  return members.length === 0 ? '{}' : `{\n${inner}${members.join(`,\n${inner}`)}\n${indent}}`;
}

function objectSchema(section: SectionClass): JsonSchema {
  const settings = [...settingsOf(section)];
  const required = settings.filter(([, setting]) => setting.required === true).map(([key]) => key);
  return {
    type: 'object',
    additionalProperties: false,
    properties: Object.fromEntries(settings.map(([key, setting]) => [key, propertySchema(setting)])),
    ...(required.length > 0 ? { required } : {}),
  };
}

function propertySchema(setting: SettingOptions): JsonSchema {
  const { rule, description, example, required, nullProblem } = setting;
  return {
    description,
    ...(required === true || nullProblem !== undefined ? rule.schema : orNull(rule.schema)),
    ...(setting.default === undefined ? {} : { default: setting.default }),
    ...(example === undefined ? {} : { examples: [example] }),
  };
}

/** `null` for an optional key means that it is absent. */
function orNull(schema: JsonSchema): JsonSchema {
  const { type, enum: words, $ref, anyOf } = schema;
  if (Array.isArray(words)) return { ...schema, enum: [...new Set<unknown>([...words, null])] };
  if ($ref !== undefined) return { anyOf: [{ $ref }, { type: 'null' }] };
  if (Array.isArray(anyOf)) return { ...schema, anyOf: [...(anyOf as unknown[]), { type: 'null' }] };
  const types = Array.isArray(type) ? type : [type];
  return { ...schema, type: [...new Set<unknown>([...types, 'null'])] };
}
