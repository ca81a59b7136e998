import type { ModelConfig } from '../../config/gateway-config.js';

/** Whether requests for this model may wait for a slot: in a queue, or for the upstream of their conversation. */
export function mayWait({ affinityWaitMs, queue }: ModelConfig): boolean {
  return queue !== null || affinityWaitMs > 0;
}
