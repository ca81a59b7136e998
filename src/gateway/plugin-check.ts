import type { Type } from '@nestjs/common';
import { printable } from '../common/text/mask.js';
import type { GatewayConfig } from '../config/gateway-config.js';
import { nearest } from '../config/loader/nearest.js';
import { readSettings } from './plugin-config.js';
import { type LoadedPlugin, pathOfModule, REGISTERS_NOTHING } from './plugin-modules.js';
import {
  type PluginProblem,
  registeredTwice,
  type RegistrationKind,
} from '../common/errors/plugin-setup-error.js';
import { describe, inTime } from './plugin-time-limit.js';
import { classOf, type Registration, registrationsIn } from './plugin-registrations.js';

/** The order that needs no policy. */
const LISTED = 'listed';

/**
 * Everything that can be said of plugins without running them: names that stand twice, `config` that the plugin's class
 * refuses, names in `disable` and `order` that nobody has. Lives for one check.
 */
export class PluginCheck {
  readonly problems: PluginProblem[] = [];
  readonly #known: Readonly<Record<RegistrationKind, Map<string, Registration>>> = {
    interceptor: new Map(),
    policy: new Map(),
    classifier: new Map(),
  };

  /** `limitMs`: how long what the modules of a plugin import may let itself be waited for. */
  constructor(private readonly limitMs: number) {}

  /** `builtIn` is the module that brings what the service itself registers. */
  async start(builtIn: Type): Promise<void> {
    for (const registration of await registrationsIn(builtIn)) this.#enter(registration, []);
  }

  async plugin({ modules, entry }: LoadedPlugin): Promise<void> {
    const path = entry === null ? [] : pathOfModule(entry);
    try {
      const found = (await inTime(Promise.all(modules.map(registrationsIn)), this.limitMs)).flat();
      const classes = new Set(modules.map(classOf));
      const own = found.filter((registration) => classes.has(registration.module));
      if (entry !== null && own.length === 0) {
        this.problems.push({ path, message: `"${entry.module}" ${REGISTERS_NOTHING}` });
      }
      for (const registration of found) this.#enter(registration, path);
      for (const { options, faults } of own) {
        if (options === null || faults.length > 0) continue;
        const { problems } = readSettings(options, entry?.config ?? {}, entry?.path ?? null);
        this.problems.push(...problems);
      }
    } catch (error) {
      // What a plugin's own classes throw while they are read.
      this.problems.push({ path, message: `the plugin cannot be read (${describe(error)})` });
    }
  }

  /** What the file names, once all plugins are known. */
  names({ disable, models }: Pick<GatewayConfig, 'disable' | 'models'>): void {
    for (const [i, id] of disable.entries()) {
      if (this.#known.interceptor.has(id)) continue;
      const known = [...this.#known.interceptor.keys()];
      this.problems.push({ path: ['disable', i], message: unknown('there is no interceptor', id, known) });
    }
    for (const [i, { order }] of models.entries()) {
      if (order === LISTED || this.#known.policy.has(order)) continue;
      const message = unknown('no routing policy has the name', order, [
        LISTED,
        ...this.#known.policy.keys(),
      ]);
      this.problems.push({ path: ['models', i, 'order'], message });
    }
  }

  #enter(registration: Registration, path: PluginProblem['path']): void {
    const { kind, name, type, module, faults } = registration;
    if (faults.length > 0) {
      this.problems.push(...faults.map((message) => ({ path, message })));
      return;
    }
    const known = this.#known[kind];
    const other = known.get(name);
    const reserved = kind === 'policy' && name === LISTED;
    if (other === undefined && !reserved) known.set(name, registration);
    else if (other?.type !== type || other.module !== module)
      this.problems.push({ path, message: registeredTwice(kind, name) });
  }
}

function unknown(what: string, name: string, known: readonly string[]): string {
  const names = known.toSorted((a, b) => (a < b ? -1 : 1)).join(', ');
  const similar = nearest(name, known);
  const hint = similar?.close === true ? `; did you mean "${similar.word}"?` : '';
  return `${what} "${printable(name, 60)}"; known: ${names}${hint}`;
}
