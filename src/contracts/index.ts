/** The extension API: all that a plugin imports. */
export { JsonArray, JsonDocument } from '../common/json/json-document.js';
export { GatewayError, type GatewayErrorOptions } from '../common/errors/gateway-error.js';
export { SseEvent } from '../common/sse/sse-event.js';
export type {
  GatewayConfig,
  JsonObject,
  ModelConfig,
  ModelEntryConfig,
  ProviderConfig,
  ServerConfig,
  ThinkTagsMode,
  UpstreamConfig,
} from '../config/gateway-config.js';
export * from './error-class.js';
export type { Labels } from '../common/selector/label-selector.js';
export * from './consumer.js';
export * from './exchange.js';
export * from './gate.js';
export * from './interceptor.js';
export * from './ports.js';
export type { OperationName } from './operation.js';
export * from './routing-policy.js';
export * from './stream.js';
