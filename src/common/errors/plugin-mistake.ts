/** What a plugin did against its contract. The text is ours alone and may be logged: no value of the plugin is in it. */
export class PluginMistake extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'PluginMistake';
  }
}
