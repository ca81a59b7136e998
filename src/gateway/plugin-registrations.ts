import type { DynamicModule, ForwardReference, Type } from '@nestjs/common';
import type { InterceptorOptions } from '../contracts/interceptor.js';
import { MARKS, markFaults } from './plugin-marks.js';
import type { RegistrationKind } from '../common/errors/plugin-setup-error.js';

/** A plugin as Nest takes it. */
export type PluginModule = Type | DynamicModule;

/** What a provider registers, as its metadata tells it. */
export interface Registration {
  readonly kind: RegistrationKind;
  /** Its id, or the name of a policy. */
  readonly name: string;
  /** Of an interceptor. */
  readonly options: InterceptorOptions | null;
  readonly type: Type;
  /** The class of the module that provides it. */
  readonly module: Type;
  /** Why it cannot be registered as it is; its name and options may be of any kind then. */
  readonly faults: readonly string[];
}

type Import = Type | DynamicModule | Promise<DynamicModule> | ForwardReference;

export function classOf(module: PluginModule): Type {
  return typeof module === 'function' ? module : module.module;
}

/** A module with all that it imports, at any depth. */
export interface PluginContent {
  readonly modules: ReadonlySet<unknown>;
  /** Classes of providers, and classes for which there is a provider. */
  readonly provided: ReadonlySet<unknown>;
  readonly registrations: readonly Registration[];
}

/** As metadata tells it; nothing is instantiated. */
export async function contentOf(root: Import): Promise<PluginContent> {
  const registrations: Registration[] = [];
  const provided = new Set<unknown>();
  const modules = new Set<unknown>();
  const waiting: Import[] = [root];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const module = await resolved(next);
    if (module === undefined || modules.has(module)) continue;
    modules.add(module);
    const type = classOf(module);
    const more: Partial<DynamicModule> = typeof module === 'function' ? {} : module;
    waiting.push(...listOf<Import>(type, 'imports'), ...((more.imports as Import[] | undefined) ?? []));
    for (const provider of [...listOf(type, 'providers'), ...(more.providers ?? [])]) {
      const { provide, useClass } = (provider ?? {}) as { provide?: unknown; useClass?: unknown };
      const given = useClass ?? provider;
      provided.add(given).add(provide);
      if (typeof given === 'function') registrations.push(...registeredBy(given as Type, type));
    }
  }
  return { modules, provided, registrations };
}

export async function registrationsIn(root: Import): Promise<readonly Registration[]> {
  return (await contentOf(root)).registrations;
}

function registeredBy(type: Type, module: Type): Registration[] {
  const found: Registration[] = [];
  for (const kind of Object.keys(MARKS) as RegistrationKind[]) {
    if (!Reflect.hasMetadata(MARKS[kind], type)) continue;
    // Of policies the mark is the name, of all others it is their options.
    const mark = Reflect.getMetadata(MARKS[kind], type) as string | { readonly id: string } | undefined;
    const name = typeof mark === 'string' ? mark : (mark?.id ?? '');
    const options = kind === 'interceptor' ? ((mark ?? null) as InterceptorOptions | null) : null;
    found.push({ kind, name, options, type, module, faults: markFaults(kind, mark, type.name) });
  }
  return found;
}

async function resolved(imported: Import): Promise<PluginModule | undefined> {
  const module = (await imported) as PluginModule | ForwardReference | undefined;
  if (module === undefined || typeof module === 'function' || 'module' in module) return module;
  return (module.forwardRef as () => PluginModule)();
}

function listOf<T>(type: Type, key: string): T[] {
  return (Reflect.getMetadata(key, type) as T[] | undefined) ?? [];
}
