import { Injectable } from '@nestjs/common';
import { pluginFailed } from '../common/errors/catalogue.js';
import { GatewayError } from '../common/errors/gateway-error.js';
import { isThenable } from '../common/errors/plugin-mistake.js';
import { GatewayLog } from '../observability/log/gateway-log.js';
import { GatewayMetrics } from '../observability/metrics/gateway.metrics.js';
import { refusalOf } from './plugin-refusal.js';

/** What plugins throw: names the plugin in the log, counts, and never shows its text to a client. */
@Injectable()
export class PluginGuard {
  constructor(
    private readonly log: GatewayLog,
    private readonly metrics: GatewayMetrics,
  ) {}

  /** The answer for a request that a plugin stopped: its own refusal, where it can be sent, or `plugin_failed`. */
  refusal(requestId: string, plugin: string, hook: string, error: unknown): GatewayError {
    let fault = error;
    try {
      if (error instanceof GatewayError) return refusalOf(error);
    } catch (mistake) {
      fault = mistake;
    }
    this.note(requestId, plugin, hook, fault);
    return pluginFailed();
  }

  note(requestId: string, plugin: string, hook: string, error: unknown): void {
    this.metrics.pluginFailed(plugin, hook);
    this.log.pluginFailed(requestId, plugin, hook, error);
  }

  /** A hook that had not ended when nobody waited for it any more; `why` goes on after it. */
  abandoned(requestId: string, plugin: string, hook: string, why: string, quiet = false): void {
    this.log.pluginAbandoned(requestId, plugin, hook, why, quiet);
  }

  /** Runs a hook whose throw changes nothing for the request. One that is wrongly asynchronous may fail later. */
  quietly(requestId: string, plugin: string, hook: string, run: () => unknown): void {
    try {
      const returned = run();
      if (isThenable(returned))
        Promise.resolve(returned).catch((error: unknown) => this.note(requestId, plugin, hook, error));
    } catch (error) {
      this.note(requestId, plugin, hook, error);
    }
  }
}
