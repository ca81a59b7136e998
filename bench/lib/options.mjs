// The options of a command of this folder.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

/**
 * What was given on the command line. `--help` prints the comment at the head of the command's file and its options, and
 * ends the process; so does an option that is none, with what is wrong.
 */
export function readOptions(moduleUrl, options) {
  try {
    const { values } = parseArgs({ options: { ...options, help: { type: 'boolean' } } });
    if (values.help !== true) return values;
    process.stdout.write(usage(moduleUrl, options));
    process.exit(0);
  } catch (error) {
    process.stderr.write(`${error.message}\n\n${usage(moduleUrl, options)}`);
    process.exit(2);
  }
}

function usage(moduleUrl, options) {
  const lines = readFileSync(fileURLToPath(moduleUrl), 'utf8').split('\n');
  const comment = lines.slice(lines[0].startsWith('#!') ? 1 : 0);
  const head = comment.slice(
    0,
    comment.findIndex((line) => !line.startsWith('//')),
  );
  const listed = Object.entries(options).map(([name, { type, default: otherwise }]) => {
    const value = type === 'string' ? ' VALUE' : '';
    const preset = type === 'string' && otherwise !== undefined ? ` (default: ${otherwise})` : '';
    return `  --${name}${value}${preset}`;
  });
  return `${head.map((line) => line.replace(/^\/\/ ?/, '')).join('\n')}\n\nOptions:\n${listed.join('\n')}\n`;
}
