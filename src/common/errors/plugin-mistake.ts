/** What a plugin did against its contract. The text is ours alone and may be logged: no value of the plugin is in it. */
export class PluginMistake extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'PluginMistake';
  }
}

/** What a hook gave back, for a synchronous one that must give back nothing. @throws PluginMistake for a promise */
export function refusePromise(returned: unknown, name: string): void {
  if (!isThenable(returned)) return;
  // Trap: a rejection that nobody hears may end the whole service.
  Promise.resolve(returned).catch(() => {});
  throw new PluginMistake(`${name} returned a promise; it must be synchronous`);
}

export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return (
    typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function'
  );
}
