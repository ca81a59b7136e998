import { dirname } from 'node:path';
import type { GatewayConfig } from '../gateway-config.js';
import { checkAccess } from './access-checks.js';
import { buildConfig, type Origin } from './build-config.js';
import type { ConfigProblem } from './config-problem.js';
import { readSource } from './config-source.js';
import { readFileText } from './file-text.js';
import { Findings, type LineOf } from './findings.js';
import type { KnownSecrets } from './known-secrets.js';
import { checkSelectors } from './label-checks.js';
import { NetworkReader } from './network-settings.js';
import { deepFreeze, isPlainObject } from './plain-object.js';
import { checkQueues } from './queue-checks.js';
import { checkReach } from './reach-checks.js';
import { readEntries } from './read-entries.js';
import { checkKeys } from './check-keys.js';
import { checkRecovery } from './recovery-checks.js';
import { checkReferences } from './references.js';
import { checkStreams } from './stream-checks.js';
import { checkState } from './state-settings.js';
import type { Environment } from './substitution.js';

/** Orders within a tier that need no plugin. */
export const BUILT_IN_ORDERS = ['listed', 'weighted', 'least_busy', 'fastest'] as const;

export interface LoadOptions {
  /** Names of routing policies that plugins given in code register; those of the built-ins are known. */
  readonly routingPolicies?: readonly string[];
}

/** A file, or its text; `directory` is what relative paths of a text start from. */
export type ConfigInput = { readonly path: string } | { readonly text: string; readonly directory?: string };

export type LoadResult =
  | {
      readonly ok: true;
      readonly config: GatewayConfig;
      readonly warnings: readonly ConfigProblem[];
      /** For problems that are found later. Holds the text of the file: not to be kept. */
      readonly lineOf: LineOf;
      /** Masks secrets in messages about these. Not to be kept either. */
      readonly secrets: KnownSecrets;
    }
  | {
      readonly ok: false;
      readonly problems: readonly ConfigProblem[];
      readonly warnings: readonly ConfigProblem[];
    };

/**
 * Reads a configuration, validates it whole, and gives a frozen snapshot, or all its problems at once. Never throws for
 * what a file may hold; problems and warnings never hold a secret. `environment` is what `${VAR}` is taken from.
 */
export function loadConfig(
  source: ConfigInput,
  environment: Environment,
  options: LoadOptions = {},
): LoadResult {
  const policies = [...BUILT_IN_ORDERS, ...(options.routingPolicies ?? [])];
  if ('text' in source) {
    return loadText(source.text, { path: null, directory: source.directory ?? null }, environment, policies);
  }
  const file = readFileText(source.path);
  if (!file.ok) return { ok: false, problems: [file.problem], warnings: [] };
  return loadText(file.text, { path: file.path, directory: null }, environment, policies);
}

function loadText(
  text: string,
  origin: Origin,
  environment: Environment,
  policies: readonly string[],
): LoadResult {
  const source = readSource(text.startsWith('\ufeff') ? text.slice(1) : text);
  if (source.problems.length > 0) return { ok: false, problems: source.problems, warnings: [] };
  const root = source.value;
  if (!isPlainObject(root)) {
    const message = root === null ? 'the file is empty' : 'the file must be a mapping';
    const problem: ConfigProblem = {
      path: '',
      line: null,
      message: `${message}; it needs providers, upstreams and models`,
    };
    return { ok: false, problems: [problem], warnings: [] };
  }
  const findings = new Findings(source.lineOf);
  const entries = readEntries(root, origin, findings, environment);
  checkReferences(entries, findings, policies);
  checkAccess(entries, findings);
  const directory = origin.path === null ? (origin.directory ?? '') : dirname(origin.path);
  const network = new NetworkReader(directory, findings, environment).read(entries);
  checkKeys(entries, findings, Date.now());
  checkQueues(entries, findings);
  checkState(entries.state, findings);
  const { problems } = findings;
  if (problems.length > 0) return { ok: false, problems, warnings: findings.warnings };
  checkRecovery(entries, findings);
  checkStreams(entries, findings);
  checkReach(entries, findings);
  checkSelectors(entries, findings);
  const config = deepFreeze(buildConfig(entries, network, origin));
  return { ok: true, config, warnings: findings.warnings, lineOf: source.lineOf, secrets: findings.secrets };
}
