import { Injectable } from '@nestjs/common';
import { shuttingDown } from '../common/errors/catalogue.js';
import { isLast } from './connection-end.js';
import type { EdgeContext } from './edge-context.js';

/** A body of which nothing comes for this long at the end of the service is not waited for. */
const STANDSTILL_MS = 3000;

/** Chat requests from the arrival of their head to the last byte of their answer: what a shutdown waits for. */
@Injectable()
export class OpenRequests {
  readonly #open = new Set<EdgeContext>();
  #whenIdle: (() => void) | null = null;

  get count(): number {
    return this.#open.size;
  }

  enter(context: EdgeContext): void {
    this.#open.add(context);
  }

  leave(context: EdgeContext): void {
    this.#open.delete(context);
    if (this.#open.size === 0) this.#whenIdle?.();
  }

  /** Answers that begin from now on say that their connection ends with them: of those of one connection the last. */
  announceEnd(): void {
    for (const { headers, response } of this.#open)
      if ((response === null || isLast(response.req)) && !headers.includes('connection'))
        headers.push('connection', 'close');
  }

  /** Refuses from now on those whose body has come to a standstill; one that still arrives goes on. Gives what ends this. */
  refuseStandingUploads(): () => void {
    let before = this.#arriving();
    const timer = setInterval(() => {
      const now = this.#arriving();
      for (const [context, bytes] of now)
        if (before.get(context) === bytes) context.reader?.refuse(shuttingDown());
      before = now;
    }, STANDSTILL_MS);
    return () => clearInterval(timer);
  }

  /** How much there is of each body that has not come whole. */
  #arriving(): Map<EdgeContext, number> {
    const bytes = new Map<EdgeContext, number>();
    for (const context of this.#open) {
      const { reader, response } = context;
      // Trap: behind another answer of its connection a body may stand still for us: for its 100, or as nothing is read.
      if (reader === null || reader.over || response === null || response.socket === null) continue;
      if (!response.req.complete) bytes.set(context, reader.arrivedBytes);
    }
    return bytes;
  }

  /** Refuses those whose body has not come whole: no exchange runs for them that could be told to end. */
  giveUpUploads(): void {
    for (const context of this.#open) context.reader?.refuse(shuttingDown());
  }

  /** True when nothing is open any more, false when that took longer than `timeoutMs`. */
  async idle(timeoutMs: number): Promise<boolean> {
    if (this.#open.size === 0) return true;
    return await new Promise<boolean>((resolve) => {
      const timer = setTimeout(() => resolve(false), timeoutMs);
      this.#whenIdle = () => {
        clearTimeout(timer);
        resolve(true);
      };
    });
  }
}
