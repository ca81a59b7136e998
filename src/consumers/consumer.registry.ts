import { Injectable } from '@nestjs/common';
import type { IncomingHttpHeaders } from 'node:http';
import { invalidApiKey, missingApiKey } from '../common/errors/access-errors.js';
import type { GatewayError } from '../common/errors/gateway-error.js';
import type { SelectConfig } from '../config/access-config.js';
import { ConfigStore } from '../config/config.store.js';
import { Caller, ConsumerSlots } from './caller.js';
import { presentedKey, REFUSED } from './credentials.js';
import { asBytes, digestBytesOfKey } from './key-digest.js';

/** Who asks; `caller` is also known where a known key is refused. */
export interface Identity {
  readonly caller: Caller | null;
  readonly error: GatewayError | null;
}

/**
 * All callers of the configuration by the digest of their key: a look-up, so that no secrets are compared. Never holds a
 * key in the clear. Lives as long as the service.
 */
@Injectable()
export class ConsumerRegistry {
  /** False = open: nobody is asked for a key. */
  readonly closed: boolean;
  /** By the bytes of the digest: half as long as its hex form, and compared as quickly as any text. */
  readonly #callers = new Map<string, Caller>();
  /** Consumer → its places, where their number is limited. */
  readonly limited = new Map<string, ConsumerSlots>();

  constructor(store: ConfigStore) {
    const { consumers } = store.current;
    this.closed = consumers !== null;
    const pool = new SelectsPool();
    for (const consumer of consumers ?? []) {
      const slots = new ConsumerSlots(consumer.limit);
      if (consumer.limit !== Infinity) this.limited.set(consumer.id, slots);
      for (const key of consumer.keys) {
        const selects = pool.get(consumer.select, key.select);
        this.#callers.set(asBytes(key.digest), new Caller(consumer, key, selects, slots));
      }
    }
  }

  /** @param nowMs unix milliseconds: expiry is a matter of the wall clock */
  identify(headers: IncomingHttpHeaders, rawHeaders: readonly string[], nowMs: number): Identity {
    const key = presentedKey(headers, rawHeaders);
    if (key === null) return { caller: null, error: missingApiKey() };
    const caller = key === REFUSED ? undefined : this.#callers.get(digestBytesOfKey(key));
    if (caller === undefined) return { caller: null, error: invalidApiKey() };
    return { caller, error: caller.objection(nowMs) };
  }
}

/** Selectors that are written alike give one list, as the selectors themselves are one. */
class SelectsPool {
  readonly #known = new Map<string, readonly SelectConfig[]>();

  get(...selects: readonly SelectConfig[]): readonly SelectConfig[] {
    const texts = selects.map(({ routes, models, upstreams }) => [
      routes?.text,
      models?.text,
      upstreams?.text,
    ]);
    const key = JSON.stringify(texts);
    const known = this.#known.get(key);
    if (known === undefined) this.#known.set(key, selects);
    return known ?? selects;
  }
}
