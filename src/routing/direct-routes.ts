import type { GatewayConfig, UpstreamConfig } from '../config/gateway-config.js';
import { plainModel } from '../config/plain-model.js';

/** `provider/real-model` and `provider:real-model`: the configured upstreams behind such a name, in file order. */
export class DirectRoutes {
  readonly #byProvider = new Map<string, Map<string, UpstreamConfig[]>>();

  constructor(config: GatewayConfig) {
    for (const upstream of config.upstreams) {
      const { id } = upstream.provider;
      let models = this.#byProvider.get(id);
      if (models === undefined) this.#byProvider.set(id, (models = new Map()));
      const same = models.get(upstream.model);
      if (same === undefined) models.set(upstream.model, [upstream]);
      else same.push(upstream);
    }
  }

  /** A model without a name, since a client's words are never one; undefined where nothing is configured. */
  find(name: string) {
    const at = name.search(/[/:]/);
    if (at < 0) return undefined;
    const upstreams = this.#byProvider.get(name.slice(0, at))?.get(name.slice(at + 1));
    return upstreams === undefined ? undefined : plainModel('', upstreams);
  }
}
