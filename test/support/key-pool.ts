import { completion } from './answers.js';
import type { ReceivedRequest } from './received-request.js';
import type { Script, ScriptedUpstream } from './scripted-upstream.js';
import { secretKey } from './secret-watch.js';

/** A provider with the keys of these ids (one letter each) in place of its single key. Nothing is probed. */
export function pool(ids: string, more: object = {}): Record<string, unknown> {
  return {
    key: undefined,
    keys: ids.split('').map((id) => ({ id, value: secretKey(id) })),
    key_order: 'ordered',
    probe_interval: 'PT0S',
    ...more,
  };
}

/** Id of the key a request came with; '' without one. */
export function keyOf(request: ReceivedRequest): string {
  const value = request.header('authorization') ?? '';
  return ['x', 'y', 'z'].find((id) => value === `Bearer ${secretKey(id)}`) ?? value;
}

/** Ids of the keys that reached a provider, in order. */
export function keysAt(upstream: ScriptedUpstream): string {
  return upstream.chats.map(keyOf).join('');
}

export const ok: Script = (_request, answer) => answer.json(200, completion());

/** An error in OpenAI's form. */
export function refuse(
  status: number,
  error: object = {},
  headers: Readonly<Record<string, string>> = {},
): Script {
  const body = { error: { message: 'the provider says no', type: 'p', param: null, code: null, ...error } };
  return (_request, answer) => answer.json(status, body, headers);
}

/** Answers by the key of the request; all others get a good answer. */
export function byKey(scripts: Readonly<Record<string, Script>>): Script {
  return (request, answer) => (scripts[keyOf(request)] ?? ok)(request, answer);
}
