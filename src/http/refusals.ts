import { Injectable } from '@nestjs/common';
import type { ServerResponse } from 'node:http';
import type { GatewayError } from '../common/errors/gateway-error.js';
import { printable } from '../common/text/mask.js';
import { ConsumerMetrics } from '../observability/metrics/consumer.metrics.js';
import { GatewayMetrics } from '../observability/metrics/gateway.metrics.js';
import { rejectionReasonOf } from '../observability/metrics/rejection-reason.js';
import { GatewayLog } from '../observability/log/gateway-log.js';
import type { EdgeContext } from './edge-context.js';
import { sendError } from './error-response.js';

/** Answers, counts and logs what is refused before an exchange begins. */
@Injectable()
export class Refusals {
  constructor(
    private readonly metrics: GatewayMetrics,
    private readonly consumers: ConsumerMetrics,
    private readonly log: GatewayLog,
  ) {}

  /** Of what is no request that could be answered in the usual way. */
  note(requestId: string, error: GatewayError): void {
    this.log.rejected(requestId, '', error.status, error.code);
  }

  send(response: ServerResponse, context: EdgeContext, error: GatewayError): void {
    const reason = rejectionReasonOf(error);
    const { caller, explains, resolved } = context;
    const forModel = resolved?.endpoint.name === 'operation';
    // A wrong path or method is nobody's request for a model, nor is what an administrator wants to be explained; who is
    // kept out is always counted.
    const counts =
      forModel || reason === 'shutting_down' || reason === 'unauthorized' || reason === 'forbidden';
    if (reason !== null && counts && !explains) this.metrics.rejected('', reason);
    if (caller !== null && counts) caller.useIn(this.consumers).counted('', reason ?? 'error');
    const who =
      caller === null
        ? {}
        : {
            consumer: printable(caller.id),
            key: printable(caller.key),
            route: printable(resolved?.route?.id ?? ''),
          };
    this.log.rejected(context.requestId, '', error.status, error.code, '', [], who);
    sendError(response, error, context);
  }
}
