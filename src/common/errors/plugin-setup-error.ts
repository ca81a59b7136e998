import { type ConfigPath, formatPath } from '../text/config-path.js';

export interface PluginProblem {
  /** Where in the file it is to be mended; empty for what was given in code. */
  readonly path: ConfigPath;
  readonly message: string;
}

/** Something in the wiring of plugins is wrong; the boot stops with these words, a line for each problem. */
export class PluginSetupError extends Error {
  constructor(readonly problems: readonly PluginProblem[]) {
    super(problems.map(textOf).join('\n'));
    this.name = 'PluginSetupError';
  }
}

function textOf({ path, message }: PluginProblem): string {
  return path.length === 0 ? message : `${formatPath(path)}: ${message}`;
}

export type RegistrationKind = 'interceptor' | 'policy' | 'classifier';

const SAID: Readonly<Record<RegistrationKind, readonly [what: string, how: string]>> = {
  interceptor: ['interceptors', 'another id in @RegisterInterceptor'],
  policy: ['routing policies', 'another name in @RegisterRoutingPolicy'],
  classifier: ['error classifiers', 'another id in @RegisterErrorClassifier'],
};

/** Two that go by one name. */
export function registeredTwice(kind: RegistrationKind, name: string): string {
  const [what, how] = SAID[kind];
  return `two ${what} are registered as "${name}"; give one of them ${how}`;
}
