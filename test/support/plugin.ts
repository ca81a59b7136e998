import { Injectable } from '@nestjs/common';
import { type ExchangeInterceptor, RegisterInterceptor } from '../../src/contracts/index.js';
import { stage, type Stage, type StageOptions } from './stage.js';

/** A plugin with these hooks, as `createApp({ plugins })` takes it. */
export function plugin(id: string, hooks: ExchangeInterceptor, order?: number): new () => object {
  class TestPlugin {}
  Object.assign(TestPlugin.prototype, hooks);
  Injectable()(TestPlugin);
  RegisterInterceptor(order === undefined ? { id } : { id, order })(TestPlugin);
  return TestPlugin;
}

/** A stage with one plugin, `test`. */
export const withHooks = (hooks: ExchangeInterceptor, options: StageOptions = {}): Promise<Stage> =>
  stage({ upstream: { max_concurrency: 1 }, plugins: [plugin('test', hooks)], ...options });
