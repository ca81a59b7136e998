import { Injectable } from '@nestjs/common';

/** Whether the service takes new work. One instance for the life of the process. */
@Injectable()
export class ServiceState {
  #draining = false;

  get draining(): boolean {
    return this.#draining;
  }

  drain(): void {
    this.#draining = true;
  }
}
