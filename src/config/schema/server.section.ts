import { byteSize, port, wholeNumber } from './number-rules.js';
import { Setting } from './setting.js';
import { flag, host, oneOf, origins, token } from './text-rules.js';
import { duration } from './tolerant-rules.js';

/** `server:`: how the service itself listens and behaves. */
export class ServerSection {
  @Setting({
    rule: host,
    default: '0.0.0.0',
    example: '127.0.0.1',
    description: 'Address or host name to listen on.',
  })
  host?: string;

  @Setting({
    rule: port,
    default: 8100,
    description: 'Port to listen on; 0 = any free port, which is logged.',
  })
  port?: number;

  @Setting({
    rule: duration,
    tolerated: true,
    default: 'PT5M',
    description: 'Time for one whole exchange with an upstream, streaming included; PT0S = no limit.',
  })
  request_timeout?: unknown;

  @Setting({
    rule: byteSize,
    default: '64MiB',
    description: 'Largest request body, at most 1GiB; a larger one is answered with 413.',
  })
  body_limit?: string | number;

  @Setting({
    rule: duration,
    tolerated: true,
    default: 'PT30S',
    description: 'How long running exchanges may go on after SIGTERM, last words to their clients included.',
  })
  shutdown_grace?: unknown;

  @Setting({
    rule: origins,
    default: [],
    example: ['https://chat.example.com'],
    description: 'Origins whose web pages may call the service; "*" = any; empty = CORS is off.',
  })
  cors?: string[];

  @Setting({
    rule: flag,
    default: false,
    description:
      'Whether clients may narrow the choice of upstreams by x-llm-proxy-tier, x-llm-proxy-providers and x-llm-proxy-tags.',
  })
  allow_hints?: boolean;

  @Setting({
    rule: flag,
    default: false,
    description:
      'Whether provider/real-model and provider:real-model reach an upstream without a model entry.',
  })
  direct?: boolean;

  @Setting({
    rule: oneOf('expose', ['full', 'ids', 'none']),
    default: 'ids',
    example: 'none',
    description:
      'What answers show of the back end: ids of upstreams and providers; full = the real model too; none = nothing.',
  })
  expose?: string;

  @Setting({
    rule: token,
    nullProblem: 'has no value; write a token, or remove the key to leave GET /metrics open',
    substituted: true,
    example: '${METRICS_TOKEN}',
    description: 'Bearer token that GET /metrics asks for; absent = open; `${VAR}` is replaced.',
  })
  metrics_token?: string;

  @Setting({
    rule: token,
    substituted: true,
    example: '${ADMIN_TOKEN}',
    description:
      'Bearer token that lets `x-llm-proxy-explain: 1` ask what would become of a request; absent = off; `${VAR}` is replaced.',
  })
  admin_token?: string;

  @Setting({
    rule: wholeNumber(0),
    default: 1000,
    description: 'Most consumers that metrics name; the rest count as "other".',
  })
  metrics_consumers?: number;
}
