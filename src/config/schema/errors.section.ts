import { wholeNumber } from './number-rules.js';
import { Setting } from './setting.js';
import { section } from './structure-rules.js';
import { duration } from './tolerant-rules.js';

const REST = { rule: duration, tolerated: true } as const;

export class RateLimitedSection {
  @Setting({ ...REST, default: 'PT30S', description: 'Rest of the key where the answer names none.' })
  rest?: unknown;

  @Setting({ ...REST, default: 'PT1H', description: 'No rest is longer, whatever the answer asks for.' })
  max?: unknown;
}

export class QuotaExhaustedSection {
  @Setting({ ...REST, default: 'PT30M', description: 'Rest of the key.' })
  rest?: unknown;

  @Setting({ ...REST, default: 'P1D', description: 'No rest is longer, whatever the answer asks for.' })
  max?: unknown;
}

export class UnauthorizedSection {
  @Setting({ ...REST, default: 'PT10M', description: 'Rest of the key.' })
  rest?: unknown;
}

export class ModelGoneSection {
  @Setting({ ...REST, default: 'PT10M', description: 'Rest of the upstream.' })
  rest?: unknown;
}

export class ServerErrorSection {
  @Setting({
    rule: wholeNumber(0, 10),
    default: 1,
    description: 'Immediate retries for each upstream and request.',
  })
  retries?: number;

  @Setting({
    ...REST,
    default: 'PT1S',
    description: 'First rest of an upstream without backoff; it doubles with each failure.',
  })
  rest?: unknown;

  @Setting({ ...REST, default: 'PT5M', description: 'Longest rest of an upstream without backoff.' })
  max?: unknown;
}

/** A class that rests nothing. */
export class NoRestSection {}

/** `errors:` of a provider as a mapping: one entry for each class. */
export class ErrorsSection {
  @Setting({ rule: section(RateLimitedSection), section: RateLimitedSection, description: 'Too fast.' })
  rate_limited?: RateLimitedSection;

  @Setting({
    rule: section(QuotaExhaustedSection),
    section: QuotaExhaustedSection,
    description: 'Nothing left to spend.',
  })
  quota_exhausted?: QuotaExhaustedSection;

  @Setting({ rule: section(UnauthorizedSection), section: UnauthorizedSection, description: 'Key refused.' })
  unauthorized?: UnauthorizedSection;

  @Setting({ rule: section(ModelGoneSection), section: ModelGoneSection, description: 'No such model.' })
  model_gone?: ModelGoneSection;

  @Setting({
    rule: section(ServerErrorSection),
    section: ServerErrorSection,
    description: 'Broken, unreachable or silent.',
  })
  server_error?: ServerErrorSection;

  @Setting({ rule: section(NoRestSection), section: NoRestSection, description: 'Not now. Nothing to set.' })
  busy?: NoRestSection;

  @Setting({
    rule: section(NoRestSection),
    section: NoRestSection,
    description: "The client's mistake. Nothing to set.",
  })
  bad_request?: NoRestSection;

  @Setting({
    rule: section(NoRestSection),
    section: NoRestSection,
    description: 'Too long for the model. Nothing to set.',
  })
  context_length?: NoRestSection;
}
