import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { JsonDocument } from '../common/json/json-document.js';
import { isJsonString, isNothing } from '../common/json/raw-value.js';
import type { Attempt } from '../contracts/exchange.js';
import { EMPTY_STRING, jsonText } from './json-text.js';
import { ReasoningTransformer } from './reasoning.transformer.js';

/** What the transformer is measured by: a view of each message, and edits in it. */
function bySteps(body: JsonDocument, field: string, emptyOk: boolean): void {
  const messages = body.array('messages');
  for (let i = 0; i < (messages?.length ?? 0); i++) {
    const message = messages?.object(i);
    if (message?.string('role') !== 'assistant') continue;
    const present = message.raw(field);
    if (isFilled(present)) continue;
    const reasoning = message.raw('reasoning');
    const text = isFilled(reasoning) ? reasoning : textOfDetails(message);
    if (text !== undefined) message.setRaw(field, text);
    else if (emptyOk && !isJsonString(present)) message.setRaw(field, EMPTY_STRING);
  }
}

const isFilled = (raw: Buffer | undefined): raw is Buffer => isJsonString(raw) && raw.length > 2;

function textOfDetails(message: JsonDocument): Buffer | undefined {
  const details = message.array('reasoning_details');
  const texts: string[] = [];
  for (let i = 0; i < (details?.length ?? 0); i++) {
    const item = details?.object(i);
    const text = item?.string('text');
    if (item === undefined || text === undefined) continue;
    if (isNothing(item.raw('type')) || item.string('type') === 'reasoning.text') texts.push(text);
  }
  return texts.join('\n') === '' ? undefined : jsonText(texts.join('\n'));
}

const FIELDS = ['reasoning_content', 'r\u00e9sum\u00e9', 'reasoning'];
const space = fc.constantFrom('', '', '', ' ', '\n\t');
const text = fc.constantFrom(
  '""',
  '"a"',
  '"\\u00e9\\ud800"',
  '"\\"q\\\\"',
  '"\\x"',
  `"${'long '.repeat(2000)}"`,
);
const other = fc.constantFrom('null', '1.0', 'true', '[1, 2]', '{"a":{"a":1e5}}', '{"a" 1}', '[1,,]');
const list = (item: fc.Arbitrary<string>) =>
  fc.tuple(space, fc.array(item, { maxLength: 4 })).map(([s, items]) => `[${s}${items.join(`${s},`)}${s}]`);
const object = (member: fc.Arbitrary<string>, maxLength: number) =>
  fc
    .tuple(space, fc.array(member, { maxLength }))
    .map(([s, members]) => `{${s}${members.join(`,${s}`)}${s}}`);
const member = (key: fc.Arbitrary<string>, value: fc.Arbitrary<string>) =>
  fc.tuple(key, space, value).map(([name, s, json]) => `${name}${s}:${s}${json}`);

const detail = object(
  fc.oneof(
    member(fc.constantFrom('"text"', '"te\\u0078t"'), fc.oneof(text, other)),
    member(fc.constant('"type"'), fc.constantFrom('"reasoning.text"', '"reasoning.encrypted"', 'null', '7')),
  ),
  4,
);
const message = object(
  fc.oneof(
    {
      weight: 3,
      arbitrary: member(fc.constant('"role"'), fc.constantFrom('"assistant"', '"\\u0061ssistant"', '"user"')),
    },
    {
      weight: 3,
      arbitrary: member(
        fc.constantFrom(...FIELDS.map((key) => JSON.stringify(key)), '"\\u0072easoning"'),
        fc.oneof(text, other),
      ),
    },
    member(fc.constant('"reasoning_details"'), fc.oneof(list(fc.oneof(detail, other)), other)),
    member(fc.constant('"content"'), fc.oneof(text, other)),
  ),
  7,
);
const history = fc
  .tuple(
    space,
    list(fc.oneof({ weight: 5, arbitrary: message }, other)),
    fc.constantFrom('', '"messages":[],'),
  )
  .map(([s, messages, twin]) => `{${s}"model":"m",${twin}"messages"${s}:${messages}${s},"n":1.0}`);

function attempt(body: JsonDocument, field: string, emptyOk: boolean): void {
  const upstream = { provider: { reasoningField: field, reasoningEmptyOk: emptyOk } };
  new ReasoningTransformer().onAttempt({ body, upstream } as unknown as Attempt);
}

describe('ReasoningTransformer', () => {
  it('writes what a view of each message would have written, in one piece or many', () => {
    const run = fc.property(
      history,
      fc.constantFrom(...FIELDS),
      fc.boolean(),
      fc.nat(40),
      (json, field, emptyOk, cut) => {
        const bytes = Buffer.from(json);
        const pieces =
          cut === 0
            ? [bytes]
            : Array.from({ length: Math.ceil(bytes.length / cut) }, (_, i) =>
                bytes.subarray(i * cut, (i + 1) * cut),
              );
        const expected = JsonDocument.tryParse(bytes);
        const body = JsonDocument.tryParse(pieces);
        if (expected === undefined || body === undefined) {
          expect(body).toBe(expected);
          return;
        }
        bySteps(expected, field, emptyOk);
        attempt(body, field, emptyOk);
        expect(body.toBuffer().toString()).toBe(expected.toBuffer().toString());
        expect(body.byteLength).toBe(expected.toBuffer().length);
        // What was written can be read, changed and forked like any other value.
        const again = body.fork();
        expect(again.array('messages')?.length).toBe(expected.array('messages')?.length);
        expect(again.array('messages')?.raw(0)).toEqual(expected.array('messages')?.raw(0));
        expect(again.get('messages')).toEqual(expected.get('messages'));
      },
    );
    fc.assert(run, { numRuns: 3000 });
  });

  it('sees what was changed before it', () => {
    const body = JsonDocument.parse(
      Buffer.from('{"messages":[{"role":"user"},{"role":"assistant","reasoning":"a"}]}'),
    );
    body.array('messages')?.object(0)?.set('role', 'assistant');
    body.array('messages')?.object(1)?.set('reasoning', 'b');
    attempt(body, 'r', true);
    expect(body.toBuffer().toString()).toBe(
      '{"messages":[{"role":"assistant","r":""},{"role":"assistant","reasoning":"b","r":"b"}]}',
    );
  });

  it('keeps next to nothing for each message', () => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    const count = 50_000;
    const body = JsonDocument.parse(
      Buffer.from(`{"messages":[${Array(count).fill('{"role":"assistant","reasoning":"a"}').join(',')}]}`),
    );
    collect();
    const before = process.memoryUsage().heapUsed;
    attempt(body, 'reasoning_content', false);
    const length = body.byteLength;
    collect();
    const kept = process.memoryUsage().heapUsed - before;
    expect(length).toBeGreaterThan(
      count * '{"role":"assistant","reasoning":"a","reasoning_content":"a"}'.length,
    );
    expect(kept / count).toBeLessThan(150);
  });
});
