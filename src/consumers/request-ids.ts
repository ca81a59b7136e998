import { CaseTwins } from '../common/json/case-twins.js';
import type { JsonDocument } from '../common/json/json-document.js';
import { JsonWalk, type WalkValue, type WalkVisitor } from '../common/json/json-walk.js';

/** An id in a request that a provider would look up. */
export interface NamedId {
  /** Null where something else than a text stands for it. */
  readonly id: string | null;
  /** The field that names it. */
  readonly param: string;
  /** A key that differs from `param` in case only, as it was written: who knows whether a provider takes it for that. */
  readonly miscased?: string;
  /** There is a text that readers may take for different ones. */
  readonly unreadable?: boolean;
}

/** Fields that name a file or a container wherever they stand in items and tools. */
const REFERENCE_NAMES = ['file_id', 'file_ids', 'container_id'];
const REFERENCES: ReadonlySet<string> = new Set(REFERENCE_NAMES);
/** What holds anything: schemas, notes of the client's own, variables, and notes of an earlier answer that nobody looks up. */
const FREE_FORM: ReadonlySet<string> = new Set([
  'annotations', 'arguments', 'attributes', 'env', 'error', 'filters', 'headers', 'input_schema', 'metadata', 'output_schema', 'parameters',
  'results', 'schema',
]); // prettier-ignore
/** Members that alone make no item. */
const BARE: ReadonlySet<string> = new Set(['id', 'type', 'role', 'status']);

/** Members that hold content as a text or a list: a number there is none. */
const TEXTUAL: ReadonlySet<string> = new Set(['result', 'content', 'encrypted_content']);

/** What a member holds: null, an empty text or list, or something. */
type Content = typeof ABSENT | typeof EMPTY | typeof FILLED;
const ABSENT = 0;
const EMPTY = 1;
const FILLED = 2;

type Place =
  | 'outside'
  | 'body'
  | 'conversation'
  | 'items'
  | 'item'
  | 'parts'
  | 'tools'
  | 'ids'
  | 'prompt'
  | 'variables'
  | 'free';

/** Where something is looked for: the keys that lead to it, or decide what it is. */
const DECISIVE: Partial<Record<Place, CaseTwins>> = {
  body: new CaseTwins(['previous_response_id', 'conversation', 'input', 'instructions', 'tools', 'prompt']),
  conversation: new CaseTwins(['id']),
  item: new CaseTwins([
    'id', 'type', 'role', 'status', 'result', 'content', 'encrypted_content', 'tools', ...REFERENCE_NAMES,
  ]), // prettier-ignore
  parts: new CaseTwins(REFERENCE_NAMES),
  tools: new CaseTwins(['container', ...REFERENCE_NAMES]),
  prompt: new CaseTwins(['variables']),
};

/** An object or array of the body. */
interface Inside {
  readonly place: Place;
  /** Of an item of the input: what is known of it. */
  readonly item: ItemNotes | null;
  /** The member of an item that this is. */
  readonly memberOf: ItemNotes | null;
  readonly key: string;
  filled: boolean;
}

/** What an item says of itself; of a member that stands twice both count. */
class ItemNotes {
  readonly ids: (string | null)[] = [];
  readonly #types = new Set<string>();
  readonly #members = new Map<string, Content>();
  #role = false;

  value(key: string, value: WalkValue): void {
    if (key === 'id' && value !== null) this.ids.push(value ?? null);
    if (key === 'type' && typeof value === 'string') this.#types.add(value);
    if (key === 'role' && typeof value === 'string') this.#role = true;
    const empty = value === '' || (value === undefined && TEXTUAL.has(key));
    this.note(key, value === null ? ABSENT : empty ? EMPTY : FILLED);
  }

  note(key: string, content: Content): void {
    const known = this.#members.get(key) ?? FILLED;
    this.#members.set(key, content < known ? content : known);
  }

  /** Whether a provider would look the item up by its id, for it does not come with its content. */
  get isReference(): boolean {
    const types = this.#types;
    if (types.has('item_reference') || (types.size === 0 && !this.#role)) return true;
    if (types.has('image_generation_call')) return !this.#has('result');
    if (types.has('reasoning')) return !this.#has('encrypted_content') && !this.#has('content');
    return ![...this.#members].some(([key, content]) => content !== ABSENT && !BARE.has(key));
  }

  #has(key: string): boolean {
    return this.#members.get(key) === FILLED;
  }
}

/**
 * What a request to `/responses` names that lives at a provider: `previous_response_id`, `conversation`, files, containers
 * and items. Schemas, definitions of functions, `metadata` and texts may hold the same words and name nothing. What `visit`
 * throws ends it.
 */
export function visitNamed(body: JsonDocument, visit: (named: NamedId) => void): void {
  const walk = new JsonWalk(new NamedIds(visit), inside('outside'));
  for (const part of body.parts()) walk.feed(part);
}

/** Tells what it finds at once and keeps nothing: a body may name millions. Lives for one body. */
class NamedIds implements WalkVisitor<Inside> {
  constructor(private readonly visit: (named: NamedId) => void) {}

  open(kind: 'object' | 'array', key: string, around: Inside): Inside {
    around.filled = true;
    this.#lookAtCase(key, around);
    const memberOf = around.place === 'item' ? around.item : null;
    const place = this.#placeOf(kind, key, around);
    return inside(place, place === 'item' ? new ItemNotes() : null, memberOf, key);
  }

  value(key: string, value: WalkValue, around: Inside): void {
    around.filled = true;
    this.#lookAtCase(key, around);
    around.item?.value(key, value);
    const { place } = around;
    if (place === 'body') {
      if (key === 'previous_response_id' || key === 'conversation') this.#name(key, value);
    } else if (place === 'conversation') {
      if (key === 'id') this.#name('conversation', value);
    } else if (place === 'ids') this.#name(key, value);
    else if (place === 'item' || place === 'parts' || place === 'tools') {
      if (REFERENCES.has(key) || (place === 'tools' && key === 'container')) this.#name(key, value);
    }
  }

  close({ item, memberOf, key, filled }: Inside): void {
    memberOf?.note(key, filled ? FILLED : EMPTY);
    if (item?.isReference === true) for (const id of item.ids) this.visit({ id, param: 'input' });
  }

  doubt({ place }: Inside): void {
    if (place !== 'free') this.visit({ id: null, param: 'input', unreadable: true });
  }

  #lookAtCase(key: string, { place }: Inside): void {
    const name = DECISIVE[place]?.of(key) ?? null;
    if (name !== null) this.visit({ id: null, param: name, miscased: key });
  }

  #name(param: string, value: WalkValue): void {
    if (value !== null) this.visit({ id: value ?? null, param });
  }

  /** What an id cannot be. */
  #odd(param: string): Place {
    this.visit({ id: null, param });
    return 'free';
  }

  #placeOf(kind: 'object' | 'array', key: string, around: Inside): Place {
    switch (around.place) {
      case 'outside':
        return 'body';
      case 'body':
        return this.#inBody(kind, key);
      case 'conversation':
        return key === 'id' ? this.#odd('conversation') : 'free';
      case 'items':
        return kind === 'array' ? 'items' : 'item';
      case 'ids':
        return this.#odd(key);
      case 'prompt':
        return key === 'variables' ? 'variables' : 'free';
      case 'variables':
        // Their names are the client's own: one that is called `metadata` is no metadata.
        return 'parts';
      case 'item':
        if (key === 'id') {
          around.item?.ids.push(null);
          return 'free';
        }
        return key === 'tools' ? 'tools' : this.#inParts(kind, key, 'parts');
      case 'parts':
      case 'tools':
        return this.#inParts(kind, key, around.place);
      case 'free':
        return 'free';
    }
  }

  #inBody(kind: 'object' | 'array', key: string): Place {
    if (key === 'previous_response_id') return this.#odd(key);
    if (key === 'conversation') return kind === 'object' ? 'conversation' : this.#odd(key);
    if (key === 'input' || key === 'instructions') return kind === 'array' ? 'items' : 'item';
    if (key === 'tools') return 'tools';
    return key === 'prompt' ? 'prompt' : 'free';
  }

  #inParts(kind: 'object' | 'array', key: string, place: 'parts' | 'tools'): Place {
    if (key === 'file_ids' && kind === 'array') return 'ids';
    if (REFERENCES.has(key) || (place === 'tools' && key === 'container' && kind === 'array'))
      return this.#odd(key);
    return FREE_FORM.has(key) ? 'free' : place;
  }
}

function inside(
  place: Place,
  item: ItemNotes | null = null,
  memberOf: ItemNotes | null = null,
  key = '',
): Inside {
  return { place, item, memberOf, key, filled: false };
}
