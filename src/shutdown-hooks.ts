import { INTERCEPTOR_METADATA, type InterceptorOptions } from './contracts/interceptor.js';

/** Those of the framework that a provider, so a plugin too, may have and that a shutdown waits for. */
const HOOKS = ['onModuleDestroy', 'beforeApplicationShutdown', 'onApplicationShutdown'] as const;

export interface HookBounds {
  /** How long the hook that is called now may take. */
  readonly leftMs: () => number;
  /** Told of one that took longer: nobody waits for it any more. */
  readonly onLate: (owner: string, hook: string, afterMs: number) => void;
  /** Told of one that failed; the others are called all the same. Trap: what it threw may hold anything. */
  readonly onFailed: (owner: string, hook: string, error: unknown) => void;
}

/**
 * Lets no hook of these instances hold up the closing: one that takes too long is left behind, and the others are called.
 * Trap: the framework calls the hooks one after the other and waits for each without a limit; what is put before them here
 * stays on the instances, so it is for the end of a process only.
 */
export function boundShutdownHooks(instances: Iterable<unknown>, bounds: HookBounds): void {
  for (const instance of new Set(instances)) {
    if (typeof instance !== 'object' || instance === null) continue;
    for (const name of HOOKS) {
      const hook: unknown = Reflect.get(instance, name);
      if (typeof hook !== 'function') continue;
      const value = (...args: unknown[]): Promise<unknown> =>
        inTime(() => Reflect.apply(hook, instance, args) as unknown, name, instance, bounds);
      // One that is frozen keeps its own; the closing as a whole is bounded too.
      Reflect.defineProperty(instance, name, { value, configurable: true, writable: true });
    }
  }
}

/** Never rejects; what the hook does later is ignored. */
async function inTime(
  end: () => unknown,
  hook: string,
  owner: object,
  { leftMs, onFailed, onLate }: HookBounds,
): Promise<unknown> {
  const limitMs = leftMs();
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(() => {
      onLate(ownerName(owner), hook, limitMs);
      resolve();
    }, limitMs);
  });
  try {
    return await Promise.race([end(), late]);
  } catch (error) {
    onFailed(ownerName(owner), hook, error);
    return undefined;
  } finally {
    clearTimeout(timer);
  }
}

/** The id of a plugin, else the name of a class. */
function ownerName({ constructor }: object): string {
  const options = Reflect.getMetadata(INTERCEPTOR_METADATA, constructor) as InterceptorOptions | undefined;
  return options === undefined ? constructor.name : `the plugin ${options.id}`;
}
