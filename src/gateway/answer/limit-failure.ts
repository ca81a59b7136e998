import type { StreamLimitError } from '../../common/sse/stream-limit.js';
import type { AttemptFailure } from '../../contracts/exchange.js';

/** The answer is more than may be held. An upstream that gave what it was asked for does not rest for it. */
export function limitFailure({ reason, asked }: StreamLimitError, status: number): AttemptFailure {
  return { result: 'net_err', status, reason, ...(asked ? { ours: true } : {}) };
}
