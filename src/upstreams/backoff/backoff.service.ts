import { Injectable } from '@nestjs/common';
import type { BackoffSetting, UpstreamConfig } from '../../config/gateway-config.js';
import { Backoff } from './backoff.js';

/**
 * Makes backoff counters from the configuration: an upstream's own, its provider's shared one, one of its own where errors
 * are told apart, or none.
 */
@Injectable()
export class BackoffService {
  readonly #shared = new Map<string, Backoff>();

  /** The counter of this upstream; null where nothing configures one. Called once for each upstream. */
  counterFor(upstream: UpstreamConfig): Backoff | null {
    if (upstream.backoff !== null) return counterOf(upstream.backoff);
    const { id, backoff, errors } = upstream.provider;
    if (backoff === null) {
      // Where errors are told apart, a broken upstream rests without being asked to.
      if (errors === null) return null;
      return new Backoff({ baseMs: errors.serverError.restMs, capMs: errors.serverError.maxMs });
    }
    let counter = this.#shared.get(id);
    if (counter === undefined) {
      counter = counterOf(backoff);
      this.#shared.set(id, counter);
    }
    return counter;
  }
}

function counterOf({ ms, baseMs }: BackoffSetting): Backoff {
  return new Backoff({ capMs: ms, baseMs });
}
