import type { GatewayConfig } from '../../src/config/gateway-config.js';
import { formatProblem } from '../../src/config/loader/config-problem.js';
import { loadConfig } from '../../src/config/loader/load-config.js';

export type Variables = Readonly<Record<string, string | undefined>>;

/** The configuration of a text that must be good. */
export function load(
  text: string,
  environment: Variables = {},
): { config: GatewayConfig; warnings: string[] } {
  const result = loadConfig({ text }, environment);
  if (!result.ok) throw new Error(result.problems.map(formatProblem).join('\n'));
  return { config: result.config, warnings: result.warnings.map(formatProblem) };
}

/** A small file; further keys of provider and upstream as flow mappings' members. */
export function file(options: {
  server?: string;
  p?: string;
  u?: string;
  m?: string;
  url?: string;
  end?: string;
}): string {
  return `server: { ${options.server ?? ''} }
providers: [{ id: p, url: "${options.url ?? 'http://h'}"${options.p ? `, ${options.p}` : ''} }]
upstreams: [{ id: u, provider: p, model: r${options.u ? `, ${options.u}` : ''} }]
models: [{ name: m, upstreams: [u]${options.m ? `, ${options.m}` : ''} }]
${options.end ?? ''}`;
}
