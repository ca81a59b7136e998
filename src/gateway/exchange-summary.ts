import { printable } from '../common/text/mask.js';
import { IMPLICIT_ROUTE } from '../config/access-config.js';
import type { GatewayExchange } from './gateway-exchange.js';

const NOTHING = Object.freeze({});

/** Who asked for what, for the summary line of a request. `realModelOf` gives the real model of an upstream. */
export function summaryOf(exchange: GatewayExchange, realModelOf: (upstream: string) => string): object {
  const { records, consumer, input, requestedModel } = exchange;
  const { route } = input;
  // Most requests of an open service have nothing to tell beyond what the line says anyway.
  const plain = consumer === null && (route === null || route === IMPLICIT_ROUTE);
  if (plain && records.length < 2 && requestedModel === exchange.modelName) return NOTHING;
  return {
    ...(consumer === null ? {} : { consumer: printable(consumer.id), key: printable(consumer.key) }),
    route: printable(route?.id ?? ''),
    // As the client wrote it: another name than `model` where a default stood in, or the name is hidden.
    requested_model: printable(requestedModel),
    ...(records.length === 0
      ? {}
      : {
          tried: records.map(({ upstream, result, status }) => ({
            upstream: printable(upstream),
            real_model: printable(realModelOf(upstream)),
            result,
            ...(status === undefined ? {} : { status }),
          })),
        }),
  };
}
