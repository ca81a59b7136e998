import type { Clock } from '../common/time/clock.js';
import { mayWait } from '../upstreams/concurrency/may-wait.js';
import type { GatewayExchange } from './gateway-exchange.js';

/** For whom a request waits, and how urgently. */
export interface QueueStanding {
  /** '' where nobody is known. */
  readonly consumer: string;
  /** −1000…1000, higher first. */
  readonly priority: number;
}

const ANYBODY: QueueStanding = { consumer: '', priority: 0 };

/** A request may lower the priority it has, never raise it. */
export function standingOf(exchange: GatewayExchange): QueueStanding {
  const { consumer } = exchange;
  const own = consumer === null ? ANYBODY : { consumer: consumer.id, priority: consumer.priority };
  const asked = priorityIn(exchange.headers['x-llm-proxy-priority']);
  return asked === null || asked >= own.priority ? own : { ...own, priority: asked };
}

/** `x-llm-proxy-queue-ms`, on every answer of a model with a queue. */
export function pushQueueMs(headers: string[], exchange: GatewayExchange, clock: Clock): void {
  if (!mayWait(exchange.model)) return;
  headers.push('x-llm-proxy-queue-ms', String(queueMs(exchange, clock)));
}

/** What it waited so far. */
export function queueMs({ waiter }: GatewayExchange, clock: Clock): number {
  return waiter === null ? 0 : Math.round(waiter.waitedMs(clock.now()));
}

const LIMIT = 1000;

/** Null for what is no whole number from -1000 to 1000. */
function priorityIn(header: string | string[] | undefined): number | null {
  if (typeof header !== 'string' || !/^[+-]?\d{1,4}$/.test(header)) return null;
  const priority = Number(header);
  return Math.abs(priority) <= LIMIT ? priority : null;
}
