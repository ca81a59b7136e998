import { describe, expect, it } from 'vitest';
import { JsonDocument } from '../common/json/json-document.js';
import type { Attempt } from '../contracts/exchange.js';
import { ReasoningTransformer } from './reasoning.transformer.js';

function backfill(
  text: string,
  reasoningEmptyOk = false,
  reasoningField: string | null = 'reasoning_content',
): string {
  const body = JsonDocument.parse(Buffer.from(text));
  const upstream = { provider: { reasoningField, reasoningEmptyOk } };
  new ReasoningTransformer().onAttempt({ body, upstream } as unknown as Attempt);
  return body.toBuffer().toString();
}

const body = (...messages: string[]): string => `{ "n": 1.0, "messages": [ ${messages.join(' , ')} ] }`;

describe('ReasoningTransformer', () => {
  it('takes the first source that has text', () => {
    const details =
      '"reasoning_details":[{"type":"reasoning.text","text":"one"},{"type":"x","text":"no"},{"text":"two"},7]';
    expect(backfill(body('{"role":"assistant","reasoning":"why\\u00e9"}'))).toBe(
      body('{"role":"assistant","reasoning":"why\\u00e9","reasoning_content":"why\\u00e9"}'),
    );
    expect(backfill(body(`{"role":"assistant","reasoning":"",${details}}`))).toBe(
      body(`{"role":"assistant","reasoning":"",${details},"reasoning_content":"one\\ntwo"}`),
    );
    expect(backfill(body('{"role":"assistant","reasoning_content":null,"reasoning":"r"}'))).toBe(
      body('{"role":"assistant","reasoning_content":"r","reasoning":"r"}'),
    );
  });

  it('leaves all else byte for byte', () => {
    const same = [
      body('{"role":"user","reasoning":"x"}', '{"role":"tool","reasoning":"x"}', 'null', '"assistant"', '[]'),
      body('{"role":"assistant","reasoning_content":"mine","reasoning":"other"}'),
      body('{"role":"assistant","reasoning":["x"],"reasoning_details":"x"}'),
      body('{"role":"assistant","reasoning_details":[{"type":"reasoning.text","text":""}]}'),
      '{"messages":{"role":"assistant","reasoning":"x"}}',
      '{"x":1}',
    ];
    for (const text of same) expect(backfill(text)).toBe(text);
    const touched = body(
      '{"role":"assistant","reasoning":"r", "n":1e5,"k":"\\ud800"}',
      '{"role":"user","n":1.50}',
    );
    expect(backfill(touched)).toBe(touched.replace('ud800"}', 'ud800","reasoning_content":"r"}'));
    expect(backfill(touched, true, null)).toBe(touched);
  });

  it('writes an empty text where that is allowed and nothing else is there', () => {
    expect(backfill(body('{"role":"assistant"}', '{"role":"user"}'), true)).toBe(
      body('{"role":"assistant","reasoning_content":""}', '{"role":"user"}'),
    );
    const empty = body('{"role":"assistant","reasoning_content":""}');
    expect(backfill(empty, true)).toBe(empty);
    expect(backfill(body('{"role":"assistant","reasoning":"r"}'), true)).toContain('"reasoning_content":"r"');
  });
});
