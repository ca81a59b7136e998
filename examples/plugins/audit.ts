import { Injectable, Logger } from '@nestjs/common';
import { IsOptional, IsString } from 'class-validator';
import {
  type Exchange,
  type ExchangeInterceptor,
  type ExchangeOutcome,
  Order,
  RegisterInterceptor,
} from 'llm-proxy/contracts';

class AuditConfig {
  /** Printed before each line. */
  @IsOptional()
  @IsString()
  label = 'audit';
}

/** Writes one line for each finished request: who was asked, and how it ended. Never what was said. */
@Injectable()
@RegisterInterceptor({ id: 'audit', order: Order.observe, config: AuditConfig })
export class AuditPlugin implements ExchangeInterceptor {
  readonly #logger = new Logger('AuditPlugin');
  #label = 'audit';

  configure(config: AuditConfig): void {
    this.#label = config.label;
  }

  onFinish(exchange: Exchange, outcome: ExchangeOutcome): void {
    const tried = exchange.attempts.map(({ upstream, result }) => `${upstream}=${result}`).join(',');
    this.#logger.log(`${this.#label}: ${exchange.id} ${exchange.model.name} ${tried} -> ${outcome.status}`);
  }
}
