import type { JsonDocument } from '../../common/json/json-document.js';
import type { GatewayExchange } from '../gateway-exchange.js';
import { echoesOf } from './continuation-request.js';
import type { RelayedAnswer } from './relayed-answer.js';
import { SeamTransform } from './seam.transform.js';

/** What an attempt needs to begin an answer that another upstream may go on with, or to go on with another's. */
export function continuationOf(exchange: GatewayExchange, answer: RelayedAnswer, body: JsonDocument) {
  answer.asked(body);
  return {
    answer,
    seam: new SeamTransform(answer, answer.begun ? echoesOf(exchange.body, answer.text) : []),
  };
}
