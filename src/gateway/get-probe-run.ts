import type { ProviderClient } from '../upstreams/provider-client.js';
import { type AnswerListener, UpstreamCall, type UpstreamRequest } from '../upstreams/upstream-call.js';

/** Small answers are read, that their connection can serve again… */
const DRAIN_LIMIT_BYTES = 64 * 1024;
/** …and no longer, because somebody waits for the verdict. */
const DRAIN_LIMIT_MS = 250;

/** One probe of a free endpoint on the wire, judged by its status alone. A redirect is a status like any other. */
export class GetProbeRun implements AnswerListener {
  #call: UpstreamCall | null = null;
  #alive = false;
  #bytes = 0;
  #timer: NodeJS.Timeout | null = null;

  constructor(
    private readonly client: ProviderClient,
    private readonly request: UpstreamRequest,
    private readonly expect: readonly number[],
    private readonly timeoutMs: number,
  ) {}

  /** Resolves when the call is over: the next probe must not meet this one at the provider. */
  run(signal: AbortSignal): Promise<boolean> {
    return new Promise((resolve) => {
      const aborted = () => this.#call?.abort();
      this.#endIn(this.timeoutMs);
      signal.addEventListener('abort', aborted);
      this.#call = new UpstreamCall(this.client, this.request, this, () => {
        if (this.#timer !== null) clearTimeout(this.#timer);
        signal.removeEventListener('abort', aborted);
        resolve(this.#alive);
      });
      try {
        this.#call.start();
      } catch {
        // HTTP cannot carry it; the call is over by itself.
      }
      if (signal.aborted) aborted();
    });
  }

  onHead(status: number): void {
    this.#alive = this.expect.includes(status);
    this.#endIn(DRAIN_LIMIT_MS);
  }

  onData(chunk: Buffer): boolean {
    this.#bytes += chunk.length;
    if (this.#bytes > DRAIN_LIMIT_BYTES) this.#call?.abort();
    return true;
  }

  onEnd(): void {}

  onFailure(): void {}

  #endIn(limitMs: number): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#call?.abort(), limitMs);
  }
}
