import type { ModelConfig, UpstreamConfig } from './gateway-config.js';

/** A model that the file does not name: for probes, and for upstreams that are addressed directly. */
export function plainModel(name: string, upstreams: readonly UpstreamConfig[]): ModelConfig {
  return {
    name,
    entries: upstreams.map((upstream) => ({ upstream, tier: 1, weight: 1, quota: [], spill: null })),
    upstreams,
    disabled: false,
    labels: new Map([['sys/model', name]]),
    patch: null,
    order: 'listed',
    maxAttempts: Infinity,
    deadlineMs: 0,
    detailed: false,
    onInterrupt: 'error',
    affinity: false,
    affinityWaitMs: 0,
    queue: null,
    heartbeat: null,
  };
}
