import type { ProbeConfig } from '../gateway-config.js';
import { expectedStatuses, probePath, word } from './recovery-rules.js';
import { Setting } from './setting.js';

/** `probe:` of a provider or an upstream: how it is asked whether it is back. */
export class ProbeSection {
  @Setting({
    rule: word(['completion', 'get']),
    default: 'completion',
    example: 'get',
    description: 'completion = a tiny chat request; get = a GET request to path, which costs nothing.',
  })
  mode?: ProbeConfig['mode'];

  @Setting({
    rule: probePath,
    default: '/health',
    example: '/api/version',
    description: "With mode get: the path, from the root of the url's host.",
  })
  path?: string;

  @Setting({
    rule: expectedStatuses,
    default: 200,
    example: [200, 204],
    description:
      'With mode get: the status, or a list of them, that means alive. Redirects are not followed.',
  })
  expect?: number | number[];

  @Setting({
    rule: word(['full', 'trial']),
    default: 'full',
    example: 'trial',
    description:
      'What a success means: full = back in the pool; trial = a request may try it, behind everything healthy.',
  })
  wake?: ProbeConfig['wake'];
}
