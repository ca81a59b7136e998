import { PluginMistake, refusePromise } from '../common/errors/plugin-mistake.js';
import type { StreamObserver, StreamTransform } from '../contracts/stream.js';

/** @throws PluginMistake where `onResponse` gave back something else than the contract says */
export function transformOf(returned: unknown): StreamTransform | null {
  if (returned === null) return null;
  const transform = objectOf(returned, 'onResponse', 'a transform') as Partial<StreamTransform>;
  for (const name of ['push', 'flush', 'whole'] as const)
    if (typeof transform[name] !== 'function')
      throw new PluginMistake(`onResponse returned a transform without ${name}`);
  needlesOf(transform.needles);
  return transform as StreamTransform;
}

/** @throws PluginMistake where `observe` gave back something else than the contract says */
export function observerOf(returned: unknown): StreamObserver | null {
  if (returned === null) return null;
  const observer = objectOf(returned, 'observe', 'an observer') as Partial<StreamObserver>;
  if (typeof observer.observe !== 'function')
    throw new PluginMistake('observe returned an observer without observe');
  for (const name of ['whole', 'piece'] as const)
    if (observer[name] !== undefined && typeof observer[name] !== 'function')
      throw new PluginMistake(`observe returned an observer whose ${name} is no function`);
  needlesOf(observer.needles);
  return observer as StreamObserver;
}

/** @throws PluginMistake */
export function needlesOf(needles: unknown): readonly string[] | null {
  if (needles === null) return null;
  if (!Array.isArray(needles) || !needles.every((needle) => typeof needle === 'string'))
    throw new PluginMistake('needles must be null or a list of texts');
  return needles;
}

function objectOf(returned: unknown, hook: string, what: string): object {
  refusePromise(returned, hook);
  if (typeof returned === 'object' && returned !== null) return returned;
  const kind = returned === undefined ? 'nothing' : `a ${typeof returned}`;
  throw new PluginMistake(`${hook} returned ${kind}, neither ${what} nor null`);
}
