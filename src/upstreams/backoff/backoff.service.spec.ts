import { describe, expect, it } from 'vitest';
import type {
  BackoffSetting,
  ErrorRules,
  ProviderConfig,
  UpstreamConfig,
} from '../../config/gateway-config.js';
import { ERROR_DEFAULTS } from '../../config/loader/build-keys.js';
import { BackoffService } from './backoff.service.js';

const minute: BackoffSetting = { text: 'PT1M', ms: 60_000, baseMs: 1000 };
const hour: BackoffSetting = { text: 'PT1H', ms: 3_600_000, baseMs: 5000 };

function upstream(
  provider: string,
  shared: BackoffSetting | null,
  own: BackoffSetting | null,
  errors: ErrorRules | null = null,
): UpstreamConfig {
  return {
    backoff: own,
    provider: { id: provider, backoff: shared, errors } as ProviderConfig,
  } as UpstreamConfig;
}

describe('BackoffService', () => {
  it('shares one counter among the upstreams of a provider that have none of their own', () => {
    const service = new BackoffService();
    const first = service.counterFor(upstream('p', minute, null));
    const second = service.counterFor(upstream('p', minute, null));
    expect(first).toBe(second);
    first?.failed(0, 0);
    expect(second?.restingMs(0)).toBe(1000);
    expect(first?.capMs).toBe(60_000);
  });

  it('gives an upstream with a cap of its own its own counter, which the shared one does not touch', () => {
    const service = new BackoffService();
    const own = service.counterFor(upstream('p', minute, hour));
    service.counterFor(upstream('p', minute, null))?.failed(0, 0);
    expect(own?.capMs).toBe(3_600_000);
    expect(own?.streak).toBe(0);
    expect(own?.failed(0, 0)).toBe(5000);
  });

  it('keeps providers apart, and gives none where nothing is configured', () => {
    const service = new BackoffService();
    expect(service.counterFor(upstream('a', minute, null))).not.toBe(
      service.counterFor(upstream('b', minute, null)),
    );
    expect(service.counterFor(upstream('c', null, null))).toBeNull();
  });

  it('gives each upstream one of its own where errors are told apart, unless a backoff says how long', () => {
    const service = new BackoffService();
    const errors = { ...ERROR_DEFAULTS, serverError: { retries: 1, restMs: 2000, maxMs: 5000 } };
    const [a, b] = [
      service.counterFor(upstream('p', null, null, errors)),
      service.counterFor(upstream('p', null, null, errors)),
    ];
    expect(a).not.toBe(b);
    expect([a?.failed(0, 0), a?.capMs]).toEqual([2000, 5000]);
    expect(service.counterFor(upstream('q', minute, null, errors))?.capMs).toBe(minute.ms);
    expect(service.counterFor(upstream('q', null, hour, errors))?.capMs).toBe(hour.ms);
  });
});
