import { Injectable } from '@nestjs/common';
import {
  RegisterRoutingPolicy,
  type RoutingChoice,
  type RoutingPolicy,
} from '../../contracts/routing-policy.js';

/** Share of requests that try another one first, so that one that was slow once gets to show that it is not. */
const EXPLORATION = 0.05;

/** `order: fastest`: the lowest recent time to the first byte first. Those without data come first and so get some. */
@Injectable()
@RegisterRoutingPolicy('fastest')
export class FastestPolicy implements RoutingPolicy {
  /** Gives numbers in [0, 1); replaced in tests. */
  random: () => number = Math.random;

  order(choices: readonly RoutingChoice[]): readonly RoutingChoice[] {
    const sorted = choices.toSorted((a, b) => (a.firstByteMs ?? -1) - (b.firstByteMs ?? -1));
    if (sorted.length < 2 || this.random() >= EXPLORATION) return sorted;
    const explored = 1 + Math.floor(this.random() * (sorted.length - 1));
    return [...sorted.splice(explored, 1), ...sorted];
  }
}
