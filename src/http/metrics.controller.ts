import { Controller, Get, Res } from '@nestjs/common';
import { PrometheusController } from '@willsoto/nestjs-prometheus';
import type { FastifyReply } from 'fastify';
import { GatewayMetrics } from '../observability/metrics/gateway.metrics.js';
import { sendText } from './json-response.js';

/** GET /metrics in Prometheus' text format. */
@Controller()
export class MetricsController extends PrometheusController {
  constructor(private readonly metrics: GatewayMetrics) {
    super();
  }

  /** Its path comes from the Prometheus module: `/metrics`. */
  @Get()
  override async index(@Res() reply: FastifyReply): Promise<string> {
    reply.hijack();
    const { registry } = this.metrics;
    const text = await registry.metrics();
    sendText(reply.request, reply, text, registry.contentType);
    return text;
  }
}
