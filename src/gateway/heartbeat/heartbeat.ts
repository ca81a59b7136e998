import { headerSafeId } from '../../common/http/response-headers.js';
import type { GatewayExchange } from '../gateway-exchange.js';
import type { ResponseSink } from '../response-sink.js';
import { HeartbeatSink } from './heartbeat-sink.js';

export { HeartbeatSink } from './heartbeat-sink.js';

/**
 * The sink itself where the model has no heartbeat, the client wants no stream, or it asked for something else than a chat
 * completion: events that this side makes are chunks of those.
 */
export function withHeartbeat(exchange: GatewayExchange, sink: ResponseSink): ResponseSink {
  const { heartbeat, name } = exchange.model;
  if (heartbeat === null || exchange.operation !== 'chat' || !exchange.body.isTrue('stream')) return sink;
  const headers = ['content-type', 'text/event-stream; charset=utf-8', 'cache-control', 'no-cache'];
  headers.push('x-accel-buffering', 'no', 'x-llm-proxy-model', headerSafeId(name));
  const state = () => {
    const position = exchange.waiter?.position() ?? 0;
    return position > 0 ? `queued position=${position}` : 'waiting';
  };
  return new HeartbeatSink(sink, { ...heartbeat, headers, state });
}
