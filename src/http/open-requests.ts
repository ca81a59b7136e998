import { Injectable } from '@nestjs/common';

/** Chat requests from the arrival of their head to the last byte of their answer: what a shutdown waits for. */
@Injectable()
export class OpenRequests {
  #open = 0;
  #whenIdle: (() => void) | null = null;

  get count(): number {
    return this.#open;
  }

  enter(): void {
    this.#open++;
  }

  leave(): void {
    this.#open--;
    if (this.#open === 0) this.#whenIdle?.();
  }

  /** True when nothing is open any more, false when that took longer than `timeoutMs`. */
  async idle(timeoutMs: number): Promise<boolean> {
    if (this.#open === 0) return true;
    return await new Promise<boolean>((resolve) => {
      const timer = setTimeout(() => resolve(false), timeoutMs);
      this.#whenIdle = () => {
        clearTimeout(timer);
        resolve(true);
      };
    });
  }
}
