import { Injectable } from '@nestjs/common';
import {
  RegisterRoutingPolicy,
  type RoutingChoice,
  type RoutingPolicy,
} from '../../contracts/routing-policy.js';
import { weightedShuffle } from '../weighted-shuffle.js';

/** `order: weighted`: weighted random without replacement. */
@Injectable()
@RegisterRoutingPolicy('weighted')
export class WeightedPolicy implements RoutingPolicy {
  order(choices: readonly RoutingChoice[]): readonly RoutingChoice[] {
    return weightedShuffle(choices, ({ entry }) => entry.weight, Math.random);
  }
}
