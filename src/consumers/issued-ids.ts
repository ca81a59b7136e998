import { miscasedKey, previousResponseNotFound, unreadableId } from '../common/errors/access-errors.js';
import { invalidJson } from '../common/errors/catalogue.js';
import type { GatewayError } from '../common/errors/gateway-error.js';
import type { JsonDocument } from '../common/json/json-document.js';
import { printable } from '../common/text/mask.js';
import type { Consumer } from '../contracts/consumer.js';
import { visitNamed } from './request-ids.js';

/** Enough for a day of a busy team; what is older is asked for rarely, and is then not found. */
const LIMIT = 50_000;

const UNREADABLE = 'a text in it holds an escape that JSON does not know, or a key a NUL';

interface Issue {
  readonly consumer: string | null;
  readonly upstream: string;
}

export interface Pinned {
  readonly upstream: string;
  /** The answer where this caller cannot get there. */
  readonly notFound: () => GatewayError;
}

/**
 * Which ids that live at a provider were issued to whom: responses, conversations, files and containers. Behind a shared
 * key the provider itself would give them to everybody. Bounded, the least recently used are forgotten. Lives as long as
 * the service; keeps nothing but ids.
 */
export class IssuedIds {
  /** Least recently used first. */
  readonly #issues = new Map<string, Issue>();

  constructor(private readonly limit = LIMIT) {}

  get size(): number {
    return this.#issues.size;
  }

  /** Notes ids that an answer of `/responses` made known. */
  learn(ids: readonly string[], consumer: Consumer | null, upstream: string): void {
    for (const id of ids) {
      const known = this.#issues.get(id);
      // An id that somebody else has stays theirs: no answer can take it over.
      if (known !== undefined && known.consumer !== (consumer?.id ?? null)) continue;
      this.#issues.delete(id);
      this.#issues.set(id, { consumer: consumer?.id ?? null, upstream });
    }
    for (const oldest of this.#issues.keys()) {
      if (this.#issues.size <= this.limit) break;
      this.#issues.delete(oldest);
    }
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
      if (closed && !seesAll && issue.consumer !== (consumer?.id ?? null))
        throw previousResponseNotFound(param);
      // What lives at two providers cannot be named in one request.
      if (found.pinned !== null && found.pinned.upstream !== issue.upstream)
        throw previousResponseNotFound(param);
      found.pinned ??= { upstream: issue.upstream, notFound: () => previousResponseNotFound(param) };
      this.#issues.delete(id);
      this.#issues.set(id, issue);
    });
    return found.pinned;
  }
}

/** A walk tells one character for each byte, except of what came as an escape. */
function shownKey(key: string): string {
  const bytes = Buffer.from(key, 'latin1');
  return printable(bytes.toString('latin1') === key ? bytes.toString('utf8') : key);
}
