import {
  parseDocument,
  Parser,
  type Document,
  type DocumentOptions,
  type ParseOptions,
  type SchemaOptions,
  type YAMLParseError,
  type YAMLWarning,
} from 'yaml';

export interface SyntaxProblem {
  readonly offset: number;
  readonly message: string;
}

const OPTIONS: ParseOptions & DocumentOptions & SchemaOptions = {
  schema: 'core',
  merge: true,
  // Digits beyond 2^53 of a patch must arrive as they are.
  intAsBigInt: true,
  // Its own tags (timestamp, binary) would give values that are no JSON.
  resolveKnownTags: false,
  // Quadratic in the parser, and without the line of the first one: `YamlReader` looks for these itself.
  uniqueKeys: false,
  // Pretty errors quote the line.
  prettyErrors: false,
  // 'silent' would also hide a second document.
  logLevel: 'error',
};

/**
 * Parses one YAML 1.2 document (core schema, merge keys). Never throws. Of the text nothing is quoted in a message:
 * the broken place may be a key.
 */
export function parseYaml(text: string): { document: Document; problems: SyntaxProblem[] } {
  let document: Document;
  try {
    document = parseDocument(text, OPTIONS);
  } catch (error) {
    // Trap: of lists in lists the library tells with the stack's own error.
    if (!(error instanceof RangeError)) throw error;
    return { document: parseDocument(''), problems: [{ offset: offsetOfOverflow(text), message: TOO_DEEP }] };
  }
  const told = [...document.errors, ...document.warnings];
  // `YamlReader` finds tags itself: it knows their paths. Trap: of `!a, b` the parser also complains about what follows the tag.
  const tagEnds = new Set(told.filter(isTagProblem).map(({ pos }) => pos[1]));
  const found = told.filter((error) => !isTagProblem(error) && !tagEnds.has(error.pos[0])).map(problemOf);
  return { document, problems: found };
}

const TOO_DEEP = 'nested too deeply';

/** Where the parser gives up. */
function offsetOfOverflow(text: string): number {
  const parser = new Parser();
  try {
    for (const token of parser.parse(text)) void token;
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
  }
  return parser.offset;
}

const HINTS: Readonly<Record<string, string>> = {
  MULTIPLE_DOCS:
    'the file holds more than one YAML document; keep one (remove the "---" line and what follows)',
  TAB_AS_INDENT: 'a tab stands in the indentation; indent with spaces',
  BAD_SCALAR_START: 'a value begins with a character that YAML reserves; quote it',
  BAD_DQ_ESCAPE: 'unknown escape in a double-quoted text; write \\\\ for a backslash, or use single quotes',
  BAD_COLLECTION_TYPE: 'a YAML tag does not fit its value; remove it or quote the value',
  RESOURCE_EXHAUSTION: TOO_DEEP,
  BAD_DIRECTIVE: 'a line that begins with "%" is a YAML directive, which is not supported here',
};

function isTagProblem({ code }: YAMLParseError | YAMLWarning): boolean {
  return code === 'TAG_RESOLVE_FAILED';
}

function problemOf(error: YAMLParseError | YAMLWarning): SyntaxProblem {
  const known = HINTS[error.code];
  // What follows a colon in the parser's own messages is text of the file.
  const own = error.message.split(/: |\n/, 1)[0] ?? error.message;
  return { offset: error.pos[0], message: known ?? `YAML syntax: ${own}` };
}
