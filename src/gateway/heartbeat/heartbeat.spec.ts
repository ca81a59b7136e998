import { describe, expect, it } from 'vitest';
import { JsonDocument } from '../../common/json/json-document.js';
import type { HeartbeatConfig, ModelConfig } from '../../config/gateway-config.js';
import { RecordingSink } from '../../../test/support/recording-sink.js';
import type { GatewayExchange } from '../gateway-exchange.js';
import { HeartbeatSink, withHeartbeat } from './heartbeat.js';

const BEAT: HeartbeatConfig = { afterMs: 60_000, everyMs: 60_000 };

function wrapped(heartbeat: HeartbeatConfig | null, operation: string, body: object): boolean {
  const exchange = {
    model: { name: 'm', heartbeat } as ModelConfig,
    operation,
    body: JsonDocument.parse(Buffer.from(JSON.stringify(body))),
    waiter: null,
  } as unknown as GatewayExchange;
  const sink = withHeartbeat(exchange, new RecordingSink());
  if (sink instanceof HeartbeatSink) sink.stop();
  return sink instanceof HeartbeatSink;
}

describe('withHeartbeat', () => {
  it('is for streamed chat completions of models that have one', () => {
    const stream = { stream: true };
    expect(wrapped(BEAT, 'chat', stream)).toBe(true);
    expect(wrapped(null, 'chat', stream)).toBe(false);
    expect(wrapped(BEAT, 'chat', { stream: false })).toBe(false);
    expect(wrapped(BEAT, 'messages', stream)).toBe(false);
    expect(wrapped(BEAT, 'responses', stream)).toBe(false);
  });
});
