import { Injectable } from '@nestjs/common';
import type { JsonDocument } from '../common/json/json-document.js';
import type { Attempt } from '../contracts/exchange.js';
import { RegisterInterceptor, type ExchangeInterceptor, type Target } from '../contracts/interceptor.js';
import { isJsonString, isNothing } from '../common/json/raw-value.js';
import { EMPTY_STRING, jsonText } from './json-text.js';

/**
 * Gives assistant messages of the history the reasoning field their provider wants back (spec 01 §7). Purely additive:
 * messages that need nothing keep their bytes. Keeps nothing between attempts.
 */
@Injectable()
@RegisterInterceptor({ id: 'reasoning-backfill', order: 160 })
export class ReasoningTransformer implements ExchangeInterceptor {
  appliesTo({ operation, upstream }: Target): boolean {
    return operation === 'chat' && upstream.provider.reasoningField !== null;
  }

  onAttempt({ body, upstream }: Attempt): void {
    const { reasoningField, reasoningEmptyOk } = upstream.provider;
    const messages = reasoningField === null ? undefined : body.array('messages');
    if (reasoningField === null || messages === undefined) return;
    for (let i = 0; i < messages.length; i++) {
      const message = messages.object(i);
      if (message?.string('role') === 'assistant') backfill(message, reasoningField, reasoningEmptyOk);
    }
  }
}

function backfill(message: JsonDocument, field: string, emptyOk: boolean): void {
  const present = message.raw(field);
  if (isFilled(present)) return;
  const reasoning = message.raw('reasoning');
  const text = isFilled(reasoning) ? reasoning : textOfDetails(message);
  if (text !== undefined) message.setRaw(field, text);
  else if (emptyOk && !isJsonString(present)) message.setRaw(field, EMPTY_STRING);
}

/** A JSON string with something in it. */
function isFilled(raw: Buffer | undefined): raw is Buffer {
  return isJsonString(raw) && raw.length > EMPTY_STRING.length;
}

function textOfDetails(message: JsonDocument): Buffer | undefined {
  const details = message.array('reasoning_details');
  const texts: string[] = [];
  for (let i = 0; i < (details?.length ?? 0); i++) {
    const item = details?.object(i);
    const text = item?.string('text');
    if (item === undefined || text === undefined) continue;
    if (isNothing(item.raw('type')) || item.string('type') === 'reasoning.text') texts.push(text);
  }
  const joined = texts.join('\n');
  return joined === '' ? undefined : jsonText(joined);
}
