import type { JsonDocument } from '../common/json/json-document.js';
import { encodeMember } from '../common/json/number-texts.js';
import type { JsonObject } from '../config/gateway-config.js';

/**
 * Layers of patches compiled into one: what to do with each key, values encoded ahead. Made when pipelines are
 * compiled, shared by all requests, never changed.
 */
export interface PatchPlan {
  readonly entries: readonly PatchEntry[];
}

interface PatchEntry {
  readonly key: string;
  /** What takes the place of the value, or of anything but an object where there is something to merge. */
  readonly bytes: Buffer;
  /** What to merge into an object of the client; null = replace whatever is there. */
  readonly merge: PatchPlan | null;
}

/**
 * An object while layers are laid over each other. `replaces`: an earlier layer had put something else there, so the
 * client's object is gone by then. Without it, layers composed ahead would differ from layers applied in turn.
 */
interface Branch {
  readonly children: Map<string, Branch | Buffer>;
  readonly replaces: boolean;
}

const OPEN_OBJECT = 0x7b;

/** Null where no layer has anything to say. */
export function compilePatch(layers: readonly (JsonObject | null)[]): PatchPlan | null {
  const root: Branch = { children: new Map(), replaces: false };
  for (const layer of layers) if (layer !== null) lay(layer, root);
  return root.children.size === 0 ? null : planOf(root);
}

/**
 * Deep merge into the client's document: objects merge, anything else replaces, null sets null. Where the client's
 * object is broken inside, it stays as it is: the provider is to refuse it.
 */
export function applyPatch(document: JsonDocument, plan: PatchPlan): void {
  for (const { key, bytes, merge } of plan.entries) {
    const child = merge === null ? undefined : document.object(key);
    if (merge !== null && child !== undefined) applyPatch(child, merge);
    else if (merge === null || document.raw(key)?.[0] !== OPEN_OBJECT) document.setRaw(key, bytes);
  }
}

function lay(patch: JsonObject, onto: Branch): void {
  for (const [key, value] of Object.entries(patch)) {
    if (!isObject(value)) {
      const bytes = encodeMember(patch, key);
      if (bytes !== undefined) onto.children.set(key, bytes);
      continue;
    }
    const below = onto.children.get(key);
    const branch: Branch =
      below === undefined || Buffer.isBuffer(below)
        ? { children: new Map(), replaces: below !== undefined }
        : below;
    onto.children.set(key, branch);
    lay(value, branch);
  }
}

function planOf(branch: Branch): PatchPlan {
  const entries = Array.from(branch.children, ([key, node]): PatchEntry => {
    if (Buffer.isBuffer(node)) return { key, bytes: node, merge: null };
    return { key, bytes: encode(node), merge: node.replaces ? null : planOf(node) };
  });
  return { entries };
}

function encode(node: Branch | Buffer): Buffer {
  if (Buffer.isBuffer(node)) return node;
  const members = Array.from(
    node.children,
    ([key, child]) => `${JSON.stringify(key)}:${encode(child).toString()}`,
  );
  return Buffer.from(`{${members.join(',')}}`);
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
