import { JsonWalk, type WalkValue, type WalkVisitor } from '../common/json/json-walk.js';

/** Fields that name a file or a container, in the items of an answer. */
const ISSUED: ReadonlySet<string> = new Set(['file_id', 'file_ids', 'container_id', 'container']);
/** What holds anything, also what a client, a tool of its own, or a server of its choice (`error`, `output`) wrote. */
const FREE_FORM: ReadonlySet<string> = new Set([
  'arguments', 'attributes', 'env', 'error', 'filters', 'headers', 'input_schema', 'metadata', 'output', 'output_schema', 'parameters',
  'schema', 'tools',
]); // prettier-ignore
/** No provider's id is as long. */
const LONGEST_ID = 512;

type Place = 'outside' | 'response' | 'conversation' | 'output' | 'item' | 'parts' | 'free';

/**
 * Finds what an answer of `/responses` made known to its client: the ids of the response, its conversation and its items,
 * and the files and containers in those. What a response only repeats of its request (`metadata`, `tools`) was not issued
 * by it. Lives for one answer; fed with its bytes, cut anywhere.
 */
export class AnswerIds implements WalkVisitor<Place> {
  readonly #found: string[] = [];
  readonly #walk: JsonWalk<Place>;
  /** Of the response itself, where it was seen: some servers let a client choose it. */
  responseId: string | null = null;

  /** @param whole what the bytes are: a response, or one item of its output */
  constructor(private readonly whole: 'response' | 'item' = 'response') {
    this.#walk = new JsonWalk<Place>(this, 'outside');
  }

  /** The ids that are new in these bytes. */
  feed(bytes: Buffer): string[] {
    this.#walk.feed(bytes);
    return this.#found.splice(0);
  }

  open(kind: 'object' | 'array', key: string, around: Place): Place {
    switch (around) {
      case 'outside':
        return this.whole;
      case 'response':
        if (key === 'conversation' && kind === 'object') return 'conversation';
        return key === 'output' && kind === 'array' ? 'output' : 'free';
      case 'output':
        return kind === 'object' ? 'item' : 'free';
      case 'item':
      case 'parts':
        return FREE_FORM.has(key) ? 'free' : 'parts';
      default:
        return 'free';
    }
  }

  value(key: string, value: WalkValue, around: Place): void {
    if (typeof value !== 'string' || value === '' || value.length > LONGEST_ID) return;
    const isId = key === 'id' && (around === 'response' || around === 'conversation' || around === 'item');
    const isConversation = key === 'conversation' && around === 'response';
    const isPart = ISSUED.has(key) && (around === 'item' || around === 'parts');
    if (isId && around === 'response') this.responseId = value;
    if (isId || isConversation || isPart) this.#found.push(value);
  }

  close(): void {}
}
