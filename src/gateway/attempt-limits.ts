import type { UpstreamConfig } from '../config/gateway-config.js';
import type { AttemptResult } from '../contracts/exchange.js';
import type { GatewayExchange } from './gateway-exchange.js';

type Limits = Pick<UpstreamConfig, 'requestTimeoutMs' | 'firstByteTimeoutMs'>;
type Timed = Pick<GatewayExchange, 'deadlineAt' | 'model'>;

/** Of a whole attempt that began at `startedAt`: its own time, or what the deadline of the request leaves; Infinity for none. */
export function requestLimitMs({ deadlineAt }: Timed, limits: Limits, startedAt: number): number {
  return Math.min(Math.max(0, deadlineAt - startedAt), ownLimitMs(limits));
}

/** Which of the two was over. */
export function requestOver(exchange: Timed, limits: Limits, startedAt: number): string {
  if (exchange.deadlineAt - startedAt >= ownLimitMs(limits))
    return `request timeout after ${Math.round(limits.requestTimeoutMs)}ms`;
  return `deadline of ${Math.round(exchange.model.deadlineMs)}ms is over`;
}

/** How long the stages before an attempt may take, and how it has failed where they take longer. */
export function stagesLimit(
  exchange: Timed,
  limits: Limits,
  startedAt: number,
  streamAsked: boolean,
): { readonly dueAt: number; readonly result: AttemptResult; readonly reason: string } {
  const wholeMs = requestLimitMs(exchange, limits, startedAt);
  const { firstByteTimeoutMs } = limits;
  if (streamAsked && firstByteTimeoutMs > 0 && firstByteTimeoutMs <= wholeMs) {
    const reason = `no first byte within ${firstByteTimeoutMs}ms`;
    return { dueAt: startedAt + firstByteTimeoutMs, result: 'timeout', reason };
  }
  const reason = wholeMs === Infinity ? '' : requestOver(exchange, limits, startedAt);
  return { dueAt: startedAt + wholeMs, result: 'net_err', reason };
}

function ownLimitMs({ requestTimeoutMs }: Limits): number {
  return requestTimeoutMs > 0 ? requestTimeoutMs : Infinity;
}
