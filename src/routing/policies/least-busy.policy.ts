import { Injectable } from '@nestjs/common';
import {
  RegisterRoutingPolicy,
  type RoutingChoice,
  type RoutingPolicy,
} from '../../contracts/routing-policy.js';

/** `order: least_busy`: the lowest share of its limit in use first, then the lowest count, then the order of the file. */
@Injectable()
@RegisterRoutingPolicy('least_busy')
export class LeastBusyPolicy implements RoutingPolicy {
  order(choices: readonly RoutingChoice[]): readonly RoutingChoice[] {
    return choices.toSorted((a, b) => a.active / a.limit - b.active / b.limit || a.active - b.active);
  }
}
