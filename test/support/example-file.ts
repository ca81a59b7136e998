/** The example with its commented keys in force: lines such as `# plugins:` and `#   - module: …`. */
export function uncommented(text: string): string {
  return text.replace(/^# (?= *(?:- )?[a-z_]+:(?: |$))/gm, '');
}
