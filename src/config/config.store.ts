import type { GatewayConfig } from './gateway-config.js';

export type ConfigListener = (config: GatewayConfig, before: GatewayConfig) => void;

/**
 * Holds the snapshot in force, for the life of the process. The snapshot is replaced as a whole and never changed;
 * a request keeps the one it began with. Reads no files.
 */
export class ConfigStore {
  #current: GatewayConfig;
  readonly #listeners = new Set<ConfigListener>();

  constructor(config: GatewayConfig) {
    this.#current = config;
  }

  get current(): GatewayConfig {
    return this.#current;
  }

  /** Puts a new snapshot in force and tells every listener, in order. @throws AggregateError when listeners threw. */
  replace(config: GatewayConfig): void {
    const before = this.#current;
    this.#current = config;
    const errors: unknown[] = [];
    for (const listener of this.#listeners) {
      try {
        listener(config, before);
      } catch (error) {
        // One that fails must not leave the others on the old snapshot.
        errors.push(error);
      }
    }
    if (errors.length > 0)
      throw new AggregateError(errors, 'the new configuration is in force, but not everywhere');
  }

  /** Returns a function that ends it. */
  onChange(listener: ConfigListener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }
}
