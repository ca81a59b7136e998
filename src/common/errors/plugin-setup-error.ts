/** Something in the wiring of plugins is wrong; the boot stops with these words. */
export class PluginSetupError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'PluginSetupError';
  }
}
