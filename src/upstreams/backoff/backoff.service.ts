import { Injectable } from '@nestjs/common';
import type { BackoffSetting, UpstreamConfig } from '../../config/gateway-config.js';
import { Backoff } from './backoff.js';

/** Makes backoff counters from the configuration: an upstream's own, its provider's shared one, or none. */
@Injectable()
export class BackoffService {
  readonly #shared = new Map<string, Backoff>();

  /** The counter of this upstream; null where nothing configures one. Called once for each upstream. */
  counterFor(upstream: UpstreamConfig): Backoff | null {
    if (upstream.backoff !== null) return counterOf(upstream.backoff);
    const { id, backoff } = upstream.provider;
    if (backoff === null) return null;
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
