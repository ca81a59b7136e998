import { headerSafeId } from '../../common/http/response-headers.js';
import type { OperationName } from '../../contracts/operation.js';
import type { GatewayExchange } from '../gateway-exchange.js';
import type { ResponseSink } from '../response-sink.js';
import { HeartbeatSink } from './heartbeat-sink.js';

export { HeartbeatSink } from './heartbeat-sink.js';

/** What is said in band in its place is in the form of these. */
const BEATING: ReadonlySet<OperationName> = new Set(['chat', 'completions']);

/** The sink itself where the model has no heartbeat or the client wants no stream. */
export function withHeartbeat(exchange: GatewayExchange, sink: ResponseSink): ResponseSink {
  const { heartbeat, name } = exchange.model;
  if (heartbeat === null || !BEATING.has(exchange.operation) || !exchange.body.isTrue('stream')) return sink;
  const headers = ['content-type', 'text/event-stream; charset=utf-8', 'cache-control', 'no-cache'];
  headers.push('x-accel-buffering', 'no', 'x-llm-proxy-model', headerSafeId(name));
  const state = () => {
    const position = exchange.waiter?.position() ?? 0;
    return position > 0 ? `queued position=${position}` : 'waiting';
  };
  return new HeartbeatSink(sink, { ...heartbeat, headers, state });
}
