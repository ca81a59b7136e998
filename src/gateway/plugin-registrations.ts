import type { DynamicModule, ForwardReference, Type } from '@nestjs/common';
import type { InterceptorOptions } from '../contracts/interceptor.js';
import { MARKS } from './plugin-marks.js';
import type { PluginModule } from './plugin-modules.js';
import type { RegistrationKind } from '../common/errors/plugin-setup-error.js';

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
}

type Import = Type | DynamicModule | Promise<DynamicModule> | ForwardReference;

export function classOf(module: PluginModule): Type {
  return typeof module === 'function' ? module : module.module;
}

/** Those of a module and of all that it imports, at any depth; nothing is instantiated. */
export async function registrationsIn(root: Import): Promise<Registration[]> {
  const found: Registration[] = [];
  const seen = new Set<unknown>();
  const waiting: Import[] = [root];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const module = await resolved(next);
    if (module === undefined || seen.has(module)) continue;
    seen.add(module);
    const type = classOf(module);
    const more: Partial<DynamicModule> = typeof module === 'function' ? {} : module;
    waiting.push(...listOf<Import>(type, 'imports'), ...((more.imports as Import[] | undefined) ?? []));
    for (const provider of [...listOf(type, 'providers'), ...(more.providers ?? [])]) {
      const provided = (provider as { useClass?: unknown } | undefined)?.useClass ?? provider;
      if (typeof provided === 'function') found.push(...registeredBy(provided as Type, type));
    }
  }
  return found;
}

function registeredBy(type: Type, module: Type): Registration[] {
  const found: Registration[] = [];
  for (const kind of Object.keys(MARKS) as RegistrationKind[]) {
    // Of policies the mark is the name, of all others it is their options.
    const mark = Reflect.getMetadata(MARKS[kind], type) as string | { readonly id: string } | undefined;
    if (mark === undefined) continue;
    const name = typeof mark === 'string' ? mark : mark.id;
    const options = kind === 'interceptor' ? (mark as InterceptorOptions) : null;
    found.push({ kind, name, options, type, module });
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
