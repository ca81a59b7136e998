import { SetMetadata, type CustomDecorator } from '@nestjs/common';
import type { ModelEntryConfig, UpstreamConfig } from '../config/gateway-config.js';
import type { Exchange } from './exchange.js';

/** Fixed text, as of interceptors. */
export const ROUTING_POLICY_METADATA = 'llm-proxy:routing-policy';

/** Marks a Nest provider as the {@link RoutingPolicy} that a model names by `order:`. */
export const RegisterRoutingPolicy = (name: string): CustomDecorator =>
  SetMetadata(ROUTING_POLICY_METADATA, name);

/** One candidate as a policy sees it. Its numbers are those of this moment. */
export interface RoutingChoice {
  readonly upstream: UpstreamConfig;
  readonly entry: ModelEntryConfig;
  /** Slots held. */
  readonly active: number;
  /** Slots there are; Infinity = unlimited. */
  readonly limit: number;
  /** Recent time to the first byte in ms (moving average, factor 0.3); null before the first request. */
  readonly firstByteMs: number | null;
}

/** Decides in which order the candidates of one tier are tried. Called once for a request and tier of two or more. */
export interface RoutingPolicy {
  /**
   * The same choices in another order; what is left out is tried last, in the order of the file. The list is the policy's
   * own, to sort in place too. Synchronous. A throw, a promise, or what is no list is logged and counted, and the order
   * of the file holds.
   */
  order(choices: RoutingChoice[], exchange: Exchange): readonly RoutingChoice[];
}
