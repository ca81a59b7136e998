import { Injectable } from '@nestjs/common';
import { Type } from 'class-transformer';
import { ArrayNotEmpty, IsNumber, IsOptional, IsString, Matches, Min, ValidateNested } from 'class-validator';
import {
  type Attempt,
  type Exchange,
  type ExchangeInterceptor,
  GatewayError,
  type JsonDocument,
  Order,
  RegisterInterceptor,
  type StreamObserver,
} from 'llm-proxy/contracts';

class Price {
  /** Id of an upstream. */
  @IsString()
  upstream: string;

  /** For a million tokens of the prompt, and of the answer. */
  @IsNumber()
  @Min(0)
  input: number;

  @IsNumber()
  @Min(0)
  output: number;
}

class TeamBudgetConfig {
  /** What a team may spend in one day (UTC). */
  @IsNumber()
  @Min(0)
  per_day: number;

  /** What an upstream costs; one that is not named is free. */
  @ArrayNotEmpty()
  @ValidateNested({ each: true })
  @Type(() => Price)
  prices: Price[];

  /** Label of a consumer that names its team. */
  @IsOptional()
  @Matches(/^[a-z0-9-]{1,63}$/)
  label = 'team';
}

/** Team of an exchange, once it is known. */
const TEAM = Symbol('team-budget');
const DAY_MS = 86_400_000;

/**
 * Refuses requests of a team that has spent its money for today. The gateway counts tokens; what they cost is known here
 * alone. Counts in this process only, and after the fact: the request that goes over the budget is still answered.
 */
@Injectable()
@RegisterInterceptor({ id: 'team-budget', order: Order.policy, config: TeamBudgetConfig })
export class TeamBudgetPlugin implements ExchangeInterceptor {
  /** Replaced in tests. */
  now: () => number = Date.now;
  #config: TeamBudgetConfig = { per_day: 0, prices: [], label: 'team' };
  #prices: ReadonlyMap<string, Price> = new Map();
  readonly #spent = new Map<string, number>();
  #day = 0;

  configure(config: TeamBudgetConfig): void {
    this.#config = config;
    this.#prices = new Map(config.prices.map((price) => [price.upstream, price]));
  }

  onRequest(exchange: Exchange): void {
    const team = exchange.consumer?.labels.get(this.#config.label) ?? '';
    exchange.notes.set(TEAM, team);
    this.#turn();
    if ((this.#spent.get(team) ?? 0) < this.#config.per_day) return;
    throw new GatewayError({
      status: 429,
      code: 'team_budget_spent',
      type: 'rate_limit_error',
      message: 'The budget of this team is spent for today.',
      headers: { 'retry-after': String(Math.ceil(((this.#day + 1) * DAY_MS - this.now()) / 1000)) },
    });
  }

  observe(exchange: Exchange, attempt: Attempt): StreamObserver | null {
    const price = this.#prices.get(attempt.upstream.id);
    if (price === undefined) return null;
    const team = exchange.notes.get(TEAM) as string;
    let booked = 0;
    // A running total may come with each event: the last one counts.
    const read = (answer: JsonDocument) => {
      const cost = costOf(answer.get('usage'), price);
      this.#turn();
      this.#spent.set(team, (this.#spent.get(team) ?? 0) + cost - booked);
      booked = cost;
    };
    return {
      needles: ['"usage"'],
      observe: ({ json }) => {
        if (json !== undefined) read(json);
      },
      whole: read,
    };
  }

  /** A new day begins with nothing spent. */
  #turn(): void {
    const day = Math.floor(this.now() / DAY_MS);
    if (day === this.#day) return;
    this.#day = day;
    this.#spent.clear();
  }
}

function costOf(usage: unknown, { input, output }: Price): number {
  if (typeof usage !== 'object' || usage === null) return 0;
  const { prompt_tokens: prompt, completion_tokens: completion } = usage as Record<string, unknown>;
  return (numberOf(prompt) * input + numberOf(completion) * output) / 1_000_000;
}

function numberOf(value: unknown): number {
  return typeof value === 'number' && value > 0 ? value : 0;
}
