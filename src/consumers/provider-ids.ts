import type { JsonDocument } from '../common/json/json-document.js';
import { type WalkFrame, walkStrings } from '../common/json/string-walk.js';

/** An id in a request that a provider would look up. */
export interface NamedId {
  readonly id: string;
  /** The field that names it. */
  readonly param: string;
}

/** Fields that name a file or container wherever they stand, in requests and in answers. */
const ANYWHERE = new Set(['file_id', 'file_ids', 'container_id']);
/** Notes of the client's own, and notes of an earlier answer that nobody looks up. */
const PASSED_OVER = new Set(['metadata', 'annotations']);

/** What a request to `/responses` names that lives at a provider. */
export function namedIn(body: JsonDocument): NamedId[] {
  const named: NamedId[] = [];
  // One byte a character: ids are ASCII, and a large body takes no more room than its bytes.
  walkStrings(body.toBuffer().toString('latin1'), {
    onText: (key, id, frame) => {
      const path = pathOf(frame);
      if (path.some((step) => PASSED_OVER.has(step))) return;
      const [top = key] = path;
      const atTop = path.length === 0;
      if (ANYWHERE.has(key)) named.push({ id, param: key });
      else if (atTop && (key === 'previous_response_id' || key === 'conversation'))
        named.push({ id, param: key });
      else if (top === 'conversation' && path.length === 1 && key === 'id')
        named.push({ id, param: 'conversation' });
      else if (top === 'tools' && key === 'container') named.push({ id, param: 'container' });
    },
    onObject: (frame) => {
      if (!isReference(frame) || pathOf(frame)[0] !== 'input') return;
      for (const [name, id] of frame.texts) if (name === 'id') named.push({ id, param: 'input' });
    },
  });
  return named;
}

/** What an answer of `/responses`, or the `response` of one of its events, made known to the client. */
export function issuedIn(answer: JsonDocument): string[] {
  const ids: string[] = [];
  walkStrings(answer.toBuffer().toString('latin1'), {
    onText: (key, id, frame) => {
      const path = pathOf(frame);
      const isId =
        key === 'id' &&
        (path.length === 0 || path[0] === 'conversation' || (path[0] === 'output' && path.length === 1));
      if (isId || ANYWHERE.has(key) || (path[0] === 'output' && key === 'container')) ids.push(id);
    },
    onObject: () => {},
  });
  return ids.filter((id) => id !== '');
}

/** `{"type":"item_reference","id":…}`, whose type may be left out. */
function isReference({ names, texts }: WalkFrame): boolean {
  if (!names.has('id')) return false;
  return (
    texts.some(([name, value]) => name === 'type' && value === 'item_reference') ||
    (!names.has('role') && !texts.some(([name]) => name === 'type'))
  );
}

/** The members on the way to what this frame holds, arrays passed over: `input`, `content`. */
function pathOf(frame: WalkFrame): string[] {
  const path: string[] = [];
  for (let at: WalkFrame | null = frame; at !== null; at = at.parent)
    if (at.kind === 'object' && at.key !== '') path.push(at.key);
    else if (at.kind === 'array' && at.parent?.kind !== 'array') path.push(at.key);
  return path.toReversed().filter((step, i, all) => i === 0 || step !== all[i - 1]);
}
