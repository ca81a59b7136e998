import { miscasedKey, previousResponseNotFound, unreadableId } from '../common/errors/access-errors.js';
import { invalidJson } from '../common/errors/catalogue.js';
import type { GatewayError } from '../common/errors/gateway-error.js';
import type { JsonDocument } from '../common/json/json-document.js';
import { printable } from '../common/text/mask.js';
import type { Consumer } from '../contracts/consumer.js';
import { visitNamed } from './request-ids.js';

/** Enough for a day of a busy team; what is older is asked for rarely, and is then not found. */
const LIMIT = 50_000;
/** Part of the limit. */
const FORGOTTEN_AT_ONCE = 1 / 500;

const UNREADABLE =
  'a text in it holds an escape that JSON does not know, or a key a NUL, what is no UTF-8, or more than 4096 bytes';

/** Where an id came from. */
export interface Issuer {
  readonly upstream: string;
  /** Id of the key, where the provider has more than one: what one account knows another may not. */
  readonly key: string | null;
}

interface Issue extends Issuer {
  readonly consumer: string | null;
  /** Whom the same issuer told of it as well: a file of a vector store, say. */
  others: Set<string | null> | null;
}

export interface Pinned extends Issuer {
  /** The answer where this caller cannot get there. */
  readonly notFound: () => GatewayError;
}

/**
 * Which ids that live at a provider were issued to whom: responses, conversations, files and containers. Behind a shared
 * key the provider itself would give them to everybody. Bounded: of who has most the least recently used are forgotten, so
 * that nobody can push out what others were issued. Lives as long as the service; keeps nothing but ids.
 */
export class IssuedIds {
  readonly #issues = new Map<string, Issue>();
  /** Consumer → its ids, least recently used first. */
  readonly #held = new Map<string | null, Set<string>>();

  constructor(private readonly limit = LIMIT) {}

  get size(): number {
    return this.#issues.size;
  }

  /** Notes ids that an answer of `/responses` made known; `responseId` is its own, where it stands among them. */
  learn(
    ids: readonly string[],
    consumer: Consumer | null,
    issuer: Issuer,
    responseId: string | null = null,
  ): void {
    if (ids.length === 0) return;
    const owner = consumer?.id ?? null;
    const { upstream, key } = issuer;
    for (const id of ids) {
      const known = this.#issues.get(id);
      const same = known?.upstream === upstream && known.key === key;
      if (known !== undefined && known.consumer !== owner) {
        // An id that somebody else has stays theirs: no answer can take it over. Trap: who may choose the id of a response
        // could choose another's.
        if (same && id !== responseId) (known.others ??= new Set()).add(owner);
        continue;
      }
      this.#issues.set(id, { consumer: owner, upstream, key, others: same ? known.others : null });
      this.#used(id, owner);
    }
    if (this.size > this.limit) this.#forget();
  }

  /**
   * The upstream that issued what a request to `/responses` names; null where it names nothing. Throws a 404 for what was
   * issued to another consumer; where the service is `closed`, also for what nobody here was issued, and a 400 for what
   * is no id at all, or what stands under a key that is one of these but for case: who knows what a provider makes of it.
   * Who `seesAll` is told of what was issued to anybody.
   */
  pinnedUpstream(
    body: JsonDocument,
    consumer: Consumer | null,
    closed: boolean,
    seesAll = false,
  ): Pinned | null {
    // Without consumers nothing is refused, so nothing is looked for before anything is known.
    if (!closed && this.#issues.size === 0) return null;
    const found: { pinned: Pinned | null } = { pinned: null };
    visitNamed(body, ({ id, param, miscased, unreadable }) => {
      if (id === null) {
        if (closed && unreadable === true) throw invalidJson(UNREADABLE);
        if (closed && miscased !== undefined) throw miscasedKey(shownKey(miscased), param);
        if (closed) throw unreadableId(param);
        return;
      }
      const issue = this.#issues.get(id);
      if (issue === undefined) {
        if (closed) throw previousResponseNotFound(param);
        return;
      }
      if (closed && !seesAll && !isFor(issue, consumer?.id ?? null)) throw previousResponseNotFound(param);
      // What lives at two providers cannot be named in one request.
      if (found.pinned !== null && found.pinned.upstream !== issue.upstream)
        throw previousResponseNotFound(param);
      const { upstream, key } = issue;
      found.pinned ??= { upstream, key, notFound: () => previousResponseNotFound(param) };
      this.#used(id, issue.consumer);
    });
    return found.pinned;
  }

  #used(id: string, owner: string | null): void {
    let held = this.#held.get(owner);
    if (held === undefined) this.#held.set(owner, (held = new Set()));
    held.delete(id);
    held.add(id);
  }

  /** Some at once: there may be thousands of consumers to look through. */
  #forget(): void {
    while (this.size > this.limit) {
      const [owner, held] = [...this.#held].reduce((most, next) =>
        next[1].size > most[1].size ? next : most,
      );
      let rest = Math.max(this.size - this.limit, Math.floor(this.limit * FORGOTTEN_AT_ONCE));
      for (const id of held) {
        if (rest-- <= 0) break;
        held.delete(id);
        this.#issues.delete(id);
      }
      if (held.size === 0) this.#held.delete(owner);
    }
  }
}

function isFor({ consumer, others }: Issue, asking: string | null): boolean {
  return consumer === asking || others?.has(asking) === true;
}

/** A walk tells one character for each byte, except of what came as an escape. */
function shownKey(key: string): string {
  const bytes = Buffer.from(key, 'latin1');
  return printable(bytes.toString('latin1') === key ? bytes.toString('utf8') : key);
}
