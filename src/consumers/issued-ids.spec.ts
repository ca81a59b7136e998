import { describe, expect, it } from 'vitest';
import type { GatewayError } from '../common/errors/gateway-error.js';
import { JsonDocument } from '../common/json/json-document.js';
import type { Consumer } from '../contracts/consumer.js';
import { IssuedIds } from './issued-ids.js';

const doc = (value: unknown): JsonDocument =>
  JsonDocument.parse(Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)));
const consumer = (id: string): Consumer => ({ id }) as Consumer;
const [red, blue] = [consumer('red'), consumer('blue')];

function known(): IssuedIds {
  const issued = new IssuedIds();
  issued.learn(
    doc({
      id: 'resp_1',
      conversation: { id: 'conv_1' },
      output: [
        {
          id: 'msg_1',
          content: [{ type: 'output_text', annotations: [{ file_id: 'cfile_1', container_id: 'cntr_1' }] }],
        },
        { id: 'ci_1', type: 'code_interpreter_call', container_id: 'cntr_2' },
      ],
    }),
    red,
    'a',
  );
  return issued;
}
function ask(issued: IssuedIds, body: unknown, who: Consumer | null = red, closed = true): string {
  try {
    return issued.pinnedUpstream(doc(body), who, closed)?.upstream ?? 'anywhere';
  } catch (error) {
    const { code, param } = error as GatewayError;
    return `${code} ${param}`;
  }
}

describe('IssuedIds', () => {
  it.each<[unknown]>([
    [{ previous_response_id: 'resp_1' }],
    [{ conversation: 'conv_1' }],
    [{ conversation: { id: 'conv_1' } }],
    [{ input: [{ type: 'item_reference', id: 'msg_1' }] }],
    [{ input: [{ id: 'msg_1' }] }],
    [{ input: [{ role: 'user', content: [{ type: 'input_file', file_id: 'cfile_1' }] }] }],
    [{ tools: [{ type: 'code_interpreter', container: 'cntr_1' }] }],
    [{ tools: [{ type: 'code_interpreter', container: { type: 'auto', file_ids: ['cfile_1'] } }] }],
    [{ input: [{ type: 'code_interpreter_call', id: 'ci_1', container_id: 'cntr_2' }] }],
  ])('%j is pinned to the upstream that issued it, and not there for anybody else', (body) => {
    expect(ask(known(), body)).toBe('a');
    expect(ask(known(), body, blue)).toMatch(/^previous_response_not_found /);
    expect(ask(known(), body, null)).toMatch(/^previous_response_not_found /);
    expect(ask(new IssuedIds(), body)).toMatch(/^previous_response_not_found /);
    // Without consumers everybody is the same one, and what is not known here may still be known there.
    expect(ask(known(), body, null, false)).toBe('a');
    expect(ask(new IssuedIds(), body, null, false)).toBe('anywhere');
  });

  it.each<[unknown]>([
    [{ input: 'resp_2' }],
    [
      {
        input: [{ role: 'user', content: 'file_id: x' }],
        metadata: { file_id: 'x', previous_response_id: 'y' },
      },
    ],
    [{ previous_response_id: null, conversation: null }],
    // An earlier answer as the client sends it back: its notes are not looked up, and its items come whole.
    [{ input: [{ type: 'message', id: 'msg_9', role: 'assistant', content: [{ type: 'output_text', text: 'x', annotations: [{ file_id: 'other' }] }] }] }], // prettier-ignore
    [{ input: [{ type: 'reasoning', id: 'rs_9', summary: [], encrypted_content: 'x' }] }],
    [
      {
        tools: [
          {
            type: 'function',
            name: 'container',
            parameters: { properties: { container: { type: 'string' } } },
          },
        ],
      },
    ],
  ])('%j names nothing', (body) => expect(ask(known(), body)).toBe('anywhere'));

  it.each([
    [
      'a name that stands twice, mine last',
      '{"previous_response_id":"theirs","previous_response_id":"resp_1"}',
    ],
    [
      'a name that stands twice, mine first',
      '{"previous_response_id":"resp_1","previous_response_id":"theirs"}',
    ],
    ['an escaped name', '{"previous\\u005fresponse_id":"theirs"}'],
    ['an escaped name deep inside', '{"input":[{"content":[{"file\\u005Fid":"theirs"}]}]}'],
    ['a list twice', '{"input":[{"type":"item_reference","id":"theirs"}],"input":[]}'],
    ['two types', '{"input":[{"type":"message","type":"item_reference","id":"theirs"}]}'],
    ['an upper-case escape', '{"conv\\u0065rsation":{"\\u0069d":"theirs"}}'],
  ])('cannot be got past by %s', (_, body) => {
    expect(ask(known(), body)).toMatch(/^previous_response_not_found /);
  });

  it('refuses what lives at two upstreams at once', () => {
    const issued = known();
    issued.learn(doc({ id: 'resp_2' }), red, 'b');
    expect(ask(issued, { previous_response_id: 'resp_2' })).toBe('b');
    expect(ask(issued, { previous_response_id: 'resp_2', tools: [{ type: 'x', container: 'cntr_1' }] })).toBe(
      'previous_response_not_found container',
    );
  });

  it('lets nobody take over an id that somebody else has', () => {
    const issued = known();
    issued.learn(doc({ id: 'resp_1' }), blue, 'b');
    expect(ask(issued, { previous_response_id: 'resp_1' })).toBe('a');
    expect(ask(issued, { previous_response_id: 'resp_1' }, blue)).toMatch(/not_found/);
  });

  it('forgets the least recently used beyond its limit', () => {
    const issued = new IssuedIds(3);
    for (const id of ['1', '2', '3']) issued.learn(doc({ id }), red, 'a');
    expect(ask(issued, { previous_response_id: '1' })).toBe('a');
    issued.learn(doc({ id: '4' }), red, 'a');
    expect(issued.size).toBe(3);
    expect(['1', '2', '3', '4'].map((id) => ask(issued, { previous_response_id: id }) === 'a')).toEqual([
      true,
      false,
      true,
      true,
    ]);
  });
});
