import type { LoggerService } from '@nestjs/common';
import type { Logger } from 'pino';

/**
 * The framework's own lines while the service is put together, through its one logger. Errors are left out: they are thrown
 * too, and whoever started the service tells them in one line. Trap: lines that Nest is asked to hold back until a logger
 * comes go to its own console, with the stack, where none ever does.
 */
export class StartLog implements LoggerService {
  constructor(private readonly logger: Logger) {}

  log(message: unknown, context?: unknown): void {
    this.logger.info({ context }, String(message));
  }

  warn(message: unknown, context?: unknown): void {
    this.logger.warn({ context }, String(message));
  }

  debug(message: unknown, context?: unknown): void {
    this.logger.debug({ context }, String(message));
  }

  verbose(message: unknown, context?: unknown): void {
    this.logger.trace({ context }, String(message));
  }

  error(): void {}

  fatal(): void {}
}
