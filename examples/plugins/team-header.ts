import { Injectable } from '@nestjs/common';
import { ArrayNotEmpty, IsOptional, IsString, Matches } from 'class-validator';
import {
  type Exchange,
  type ExchangeInterceptor,
  GatewayError,
  Order,
  RegisterInterceptor,
} from 'llm-proxy/contracts';

class TeamHeaderConfig {
  /** Name of the header in lower case. One that begins with `x-llm-proxy-` never reaches a provider. */
  @IsOptional()
  @Matches(/^[a-z0-9-]{1,64}$/)
  header = 'x-llm-proxy-team';

  /** Who may ask. */
  @ArrayNotEmpty()
  @IsString({ each: true })
  teams: string[];
}

/** Refuses requests that do not say which team they come from. A label, not a proof: whoever knows a name may use it. */
@Injectable()
@RegisterInterceptor({ id: 'team-header', order: Order.identity, config: TeamHeaderConfig })
export class TeamHeaderPlugin implements ExchangeInterceptor {
  #header = '';
  #teams: ReadonlySet<string> = new Set();

  configure(config: TeamHeaderConfig): void {
    this.#header = config.header;
    this.#teams = new Set(config.teams);
  }

  onRequest(exchange: Exchange): void {
    const team = exchange.headers[this.#header];
    if (typeof team === 'string' && this.#teams.has(team)) return;
    throw new GatewayError({
      status: 403,
      code: 'unknown_team',
      type: 'permission_error',
      message: `The header ${this.#header} must name a team that may use this service.`,
    });
  }
}
