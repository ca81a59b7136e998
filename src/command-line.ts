import { parseArgs } from 'node:util';

export type Command =
  | { readonly kind: 'start' }
  | { readonly kind: 'check'; readonly path: string }
  | { readonly kind: 'new-key'; readonly id: string }
  | { readonly kind: 'help' }
  | { readonly kind: 'version' }
  | { readonly kind: 'wrong'; readonly message: string };

export const USAGE = `llm-proxy: an LLM gateway in front of your GPUs and your providers

  llm-proxy                 start, with ./config.yaml or the file that CONFIG_PATH names
  llm-proxy --check PATH    validate a configuration file and print its effective values
  llm-proxy --new-key [ID]  make a key for a consumer; print it once, and the line for the file
  llm-proxy --help          this text
  llm-proxy --version

Environment:
  CONFIG_PATH   configuration file (default: config.yaml in the working directory)
  LOG_LEVEL     trace, debug, info (default), warn, error, fatal, silent
  LOG_FORMAT    json (default when standard output is no terminal) or pretty
  HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, NO_PROXY   forward proxies on the way to providers
`;

export function parseCommandLine(args: readonly string[], configPath: string): Command {
  try {
    const { values, positionals } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        check: { type: 'boolean' },
        'new-key': { type: 'boolean' },
        help: { type: 'boolean', short: 'h' },
        version: { type: 'boolean' },
      },
    });
    if (values.help) return { kind: 'help' };
    if (values.version) return { kind: 'version' };
    const [path, surplus] = positionals;
    if (values.check && surplus === undefined) return { kind: 'check', path: path ?? configPath };
    if (values['new-key'] && surplus === undefined) return { kind: 'new-key', id: path ?? 'new' };
    if (path === undefined) return { kind: 'start' };
    return { kind: 'wrong', message: 'unexpected argument; the configuration file is named by CONFIG_PATH' };
  } catch (error) {
    return { kind: 'wrong', message: (error as Error).message.split('\n')[0] ?? 'unknown option' };
  }
}
