import { shuttingDown, stateUnavailable } from '../common/errors/catalogue.js';
import type { GatewayError } from '../common/errors/gateway-error.js';
import type { GivenUp } from './gateway-exchange.js';

const WHEN: Readonly<Record<GivenUp, string>> = {
  client_gone: 'when the client left',
  shutting_down: 'when the service had to end',
  slot_lost: 'when its slot was lost',
};

/** Why a request that nobody answered yet ends. */
export function givenUpError(why: GivenUp): GatewayError {
  return why === 'slot_lost' ? stateUnavailable() : shuttingDown();
}

/** In words that go on after what a plugin had not ended. */
export const whenGivenUp = (why: GivenUp): string => WHEN[why];
