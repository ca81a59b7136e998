import 'reflect-metadata';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { RegisterInterceptor } from './contracts/interceptor.js';
import { boundShutdownHooks } from './shutdown-hooks.js';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

type Hook = (signal?: string) => unknown;
const never = (): Promise<never> => new Promise(() => {});

function bounded(...instances: unknown[]): string[] {
  const told: string[] = [];
  boundShutdownHooks(instances, {
    leftMs: () => 300,
    onFailed: (owner, hook, error) => void told.push(`${hook} of ${owner} failed: ${String(error)}`),
    onLate: (owner, hook, afterMs) => void told.push(`${hook} of ${owner} ${afterMs}`),
  });
  return told;
}

describe('boundShutdownHooks', () => {
  it.each(['onModuleDestroy', 'beforeApplicationShutdown', 'onApplicationShutdown'])(
    'leaves a %s behind that does not end, and says whose it is',
    async (name) => {
      class Hanging {}
      class Marked {}
      RegisterInterceptor({ id: 'mine' })(Marked);
      for (const type of [Hanging, Marked]) Object.assign(type.prototype, { [name]: never });
      const [first, second] = [new Hanging(), new Marked()] as unknown as Record<string, Hook>[];
      const told = bounded(first, second, first);
      const ended = Promise.all([first?.[name]?.(), second?.[name]?.()]);
      await vi.advanceTimersByTimeAsync(299);
      expect(told).toEqual([]);
      await vi.advanceTimersByTimeAsync(1);
      await ended;
      expect(told).toEqual([`${name} of Hanging 300`, `${name} of the plugin mine 300`]);
    },
  );

  it('calls them as they were called, and waits for those that end', async () => {
    class Closing {
      readonly seen: unknown[] = [];
      async onModuleDestroy(): Promise<void> {
        await new Promise((resolve) => setTimeout(resolve, 100));
        this.seen.push('destroyed');
      }
      onApplicationShutdown(signal?: string): void {
        this.seen.push(signal);
      }
    }
    const closing = new Closing();
    const told = bounded(closing, null, undefined, 'a text', Object.create(null));
    const ended = closing.onModuleDestroy();
    await vi.advanceTimersByTimeAsync(100);
    await ended;
    closing.onApplicationShutdown('SIGTERM');
    await vi.runAllTimersAsync();
    expect(closing.seen).toEqual(['destroyed', 'SIGTERM']);
    expect(told).toEqual([]);
  });

  it('tells of a hook that fails, in time or at once, and lets the others be called', async () => {
    const failing: Record<string, Hook> = {
      onModuleDestroy: () => Promise.reject(new Error('rejected')),
      beforeApplicationShutdown: () => {
        throw new Error('thrown');
      },
      onApplicationShutdown: () =>
        new Promise((_resolve, reject) => setTimeout(() => reject(new Error('late')), 400)),
    };
    const told = bounded(failing);
    const ended = Promise.all(Object.values(failing).map((hook) => hook()));
    await vi.runAllTimersAsync();
    await expect(ended).resolves.toEqual([undefined, undefined, undefined]);
    expect(told).toEqual([
      'beforeApplicationShutdown of Object failed: Error: thrown',
      'onModuleDestroy of Object failed: Error: rejected',
      'onApplicationShutdown of Object 300',
    ]);
  });

  it('leaves what is frozen as it is', () => {
    const frozen = Object.freeze({ onModuleDestroy: never });
    bounded(frozen);
    expect(frozen.onModuleDestroy).toBe(never);
  });
});
