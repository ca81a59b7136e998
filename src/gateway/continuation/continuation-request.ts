import type { JsonDocument } from '../../common/json/json-document.js';
import type { JsonObject, PrefillConfig } from '../../config/gateway-config.js';
import { applyPatch, compilePatch } from '../../patching/patch-plan.js';

const OPEN_ARRAY = 0x5b;

/**
 * Makes a request that asks for the rest of an answer: what the client has of it stands last, as the assistant's own
 * words. Where there is no text yet the request stays as it is. Everything else keeps its bytes.
 */
export function askForRest(body: JsonDocument, text: string, prefill: PrefillConfig): void {
  const messages = body.array('messages');
  if (text === '' || messages === undefined) return;
  const last = messages.object(messages.length - 1);
  if (last?.string('role') === 'assistant') append(last, text);
  else messages.push({ role: 'assistant', content: text });
  const message = messages.object(messages.length - 1);
  if (message !== undefined) merge(message, prefill.message);
  merge(body, prefill.body);
}

/** What a server may send again before it goes on: the text, or with it the client's own beginning of the message. */
export function echoesOf(body: JsonDocument, text: string): readonly string[] {
  const messages = body.array('messages');
  const last = messages?.object(messages.length - 1);
  const begun = last?.string('role') === 'assistant' ? textOf(last) : '';
  return begun === '' ? [text] : [begun + text, text];
}

function append(message: JsonDocument, text: string): void {
  if (message.raw('content')?.[0] !== OPEN_ARRAY) {
    message.set('content', (message.string('content') ?? '') + text);
    return;
  }
  const parts = message.array('content');
  const last = parts?.object(parts.length - 1);
  const before = last?.string('text');
  if (last !== undefined && before !== undefined) last.set('text', before + text);
  else parts?.push({ type: 'text', text });
}

function textOf(message: JsonDocument): string {
  if (message.raw('content')?.[0] !== OPEN_ARRAY) return message.string('content') ?? '';
  const parts = message.array('content');
  let text = '';
  for (let i = 0; i < (parts?.length ?? 0); i++) text += parts?.object(i)?.string('text') ?? '';
  return text;
}

function merge(into: JsonDocument, patch: JsonObject | null): void {
  const plan = compilePatch([patch]);
  if (plan !== null) applyPatch(into, plan);
}
