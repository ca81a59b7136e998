import { describe, expect, it } from 'vitest';
import type { GatewayError } from '../common/errors/gateway-error.js';
import { JsonDocument } from '../common/json/json-document.js';
import type { Consumer } from '../contracts/consumer.js';
import { AnswerIds } from './answer-ids.js';
import { IssuedIds } from './issued-ids.js';

const doc = (value: unknown): JsonDocument =>
  JsonDocument.parse(Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)));
const idsIn = (value: unknown, whole?: 'item'): string[] =>
  new AnswerIds(whole).feed(Buffer.from(JSON.stringify(value)));
const consumer = (id: string): Consumer => ({ id }) as Consumer;
const [red, blue] = [consumer('red'), consumer('blue')];
const [A, B] = [
  { upstream: 'a', key: null },
  { upstream: 'b', key: 'second' },
];

function known(): IssuedIds {
  const issued = new IssuedIds();
  issued.learn(
    idsIn({
      id: 'resp_1',
      conversation: { id: 'conv_1' },
      output: [
        {
          id: 'msg_1',
          content: [{ type: 'output_text', annotations: [{ file_id: 'cfile_1', container_id: 'cntr_1' }] }],
        },
        { id: 'ci_1', type: 'code_interpreter_call', container_id: 'cntr_2' },
        { id: 'rs_1', type: 'reasoning', summary: [] },
      ],
    }),
    red,
    A,
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
    [{ input: [{ role: 'user', content: [{ type: 'input_image', file_id: 'cfile_1' }] }] }],
    [
      {
        input: [
          { type: 'computer_call_output', output: { type: 'computer_screenshot', file_id: 'cfile_1' } },
        ],
      },
    ],
    [
      {
        input: [
          {
            type: 'function_call_output',
            call_id: 'c',
            output: [{ type: 'input_file', file_id: 'cfile_1' }],
          },
        ],
      },
    ],
    [
      {
        input: [
          {
            type: 'shell_call',
            environment: { type: 'container_reference', container_id: 'cntr_1' },
            action: {},
          },
        ],
      },
    ],
    [{ input: { role: 'user', content: [{ type: 'input_file', file_id: 'cfile_1' }] } }],
    [{ tools: [{ type: 'shell', environment: { type: 'container_reference', container_id: 'cntr_1' } }] }],
    [{ tools: [{ type: 'shell', environment: { type: 'container_auto', file_ids: ['cfile_1'] } }] }],
    [{ tools: [{ type: 'image_generation', input_image_mask: { file_id: 'cfile_1' } }] }],
    [{ prompt: { id: 'pmpt_1', variables: { metadata: { type: 'input_file', file_id: 'cfile_1' } } } }],
    // Items that come without what they are: the provider looks them up.
    [{ input: [{ type: 'image_generation_call', id: 'msg_1' }] }],
    [{ input: [{ type: 'image_generation_call', id: 'msg_1', status: 'completed', result: null }] }],
    [{ input: [{ type: 'reasoning', id: 'rs_1', summary: [] }] }],
    [{ input: [{ type: 'reasoning', id: 'rs_1', summary: [], content: [], encrypted_content: null }] }],
    [{ input: [{ type: 'message', id: 'msg_1', role: 'assistant', content: null }] }],
    [{ input: [{ type: 'web_search_call', id: 'msg_1', status: 'completed' }] }],
    [{ input: [{ type: null, role: null, id: 'msg_1' }] }],
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
    [{ previous_response_id: null, conversation: null, input: [{ role: 'user', content: [{ type: 'input_image', file_id: null, image_url: 'x' }] }] }], // prettier-ignore
    [
      {
        input: [
          { type: 'reasoning', id: 'rs_9', summary: [], content: [{ type: 'reasoning_text', text: 'x' }] },
        ],
      },
    ],
    [
      {
        input: [
          {
            type: 'local_shell_call',
            id: 'lsh_9',
            call_id: 'c',
            action: {
              type: 'exec',
              command: ['ls'],
              env: { container_id: 'x', file_id: 'y', file_ids: 'z' },
            },
          },
        ],
      },
    ],
    [
      {
        input: [
          {
            type: 'mcp_call',
            id: 'mcp_9',
            name: 'f',
            arguments: '{}',
            error: { type: 'tool_execution_error', content: [{ type: 'text', file_id: 'x' }] },
          },
        ],
      },
    ],
    [{ input: [{ type: 'custom_tool_call', call_id: 'c', name: 'f', input: '{"file_id":"x"}' }] }],
    [{ input: [{ type: 'mcp_approval_request', id: 'a', name: 'f', arguments: '{"container_id":"x"}' }] }],
    [
      {
        input: [
          { type: 'shell_call', call_id: 'c', action: { commands: ['ls'] }, environment: { type: 'local' } },
        ],
      },
    ],
    [
      {
        input: [
          {
            type: 'apply_patch_call',
            call_id: 'c',
            operation: { type: 'update_file', path: 'file_id', diff: 'x' },
          },
        ],
      },
    ],
    [{ input: [{ type: 'image_generation_call', id: 'ig_9', result: 'aGk=' }] }],
    [{ input: [{ type: 'message', id: 'msg_9', role: 'assistant', content: [] }] }],
    [{ input: [{ id: 'msg_9', role: 'assistant', content: '' }] }],
    [{ input: [{ type: 'web_search_call', id: 'ws_9', status: 'completed', action: {} }] }],
    [
      {
        input: [{ type: 'function_call', id: 'fc_9', call_id: 'c', name: 'f', arguments: '{"file_id":"x"}' }],
      },
    ],
    [
      {
        input: [{ type: 'function_call_output', call_id: 'c', output: '{"file_id":"x","container_id":"y"}' }],
      },
    ],
    [
      {
        input: [
          { type: 'file_search_call', id: 'fs_9', queries: ['q'], results: [{ file_id: 'x', text: 't' }] },
        ],
      },
    ],
    [
      {
        input: [
          {
            type: 'mcp_list_tools',
            id: 'l',
            server_label: 's',
            tools: [{ name: 'f', input_schema: { default: { file_id: 'x' } } }],
          },
        ],
      },
    ],
    // The same words where a caller describes something of its own.
    [
      {
        tools: [
          {
            type: 'function',
            name: 'f',
            parameters: {
              type: 'object',
              default: { file_id: 'x', file_ids: ['y'] },
              properties: { container: { container: 'z', const: 'x' } },
            },
          },
        ],
      },
    ],
    [
      {
        tools: [
          { type: 'function', function: { name: 'f', parameters: { examples: [{ container_id: 'x' }] } } },
        ],
      },
    ],
    [{ tools: [{ type: 'mcp', server_url: 'u', headers: { file_id: 'x', container: 'y' } }] }],
    [
      {
        tools: [
          { type: 'file_search', vector_store_ids: ['vs_1'], filters: { key: 'file_id', file_id: 'x' } },
        ],
      },
    ],
    [
      {
        text: {
          format: {
            type: 'json_schema',
            name: 'n',
            schema: { default: { file_id: 'x', previous_response_id: 'y' } },
          },
        },
      },
    ],
    [{ metadata: { conversation: 'x', container: 'y', file_ids: 'z' } }],
    [{ prompt: { id: 'pmpt_1', variables: { file: 'file_id' } } }],
    [
      {
        tool_choice: { type: 'function', name: 'file_id', file_id: 'x' },
        extra: { file_id: 'x', input: { id: 'y' } },
      },
    ],
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
    ['an escaped name deep inside', '{"input":[{"role":"user","content":[{"file\\u005Fid":"theirs"}]}]}'],
    ['a list twice', '{"input":[{"type":"item_reference","id":"theirs"}],"input":[]}'],
    ['two types', '{"input":[{"type":"message","type":"item_reference","id":"theirs"}]}'],
    [
      'a picture once with and once without its content',
      '{"input":[{"type":"image_generation_call","id":"theirs","result":"x","result":null}]}',
    ],
    ['two ids of an item', '{"input":[{"type":"item_reference","id":"msg_1","id":"theirs"}]}'],
    ['two conversations', '{"conversation":{"id":"theirs","id":"conv_1"}}'],
    ['an upper-case escape', '{"conv\\u0065rsation":{"\\u0069d":"theirs"}}'],
  ])('cannot be got past by %s', (_, body) => {
    expect(ask(known(), body)).toMatch(/^previous_response_not_found /);
  });

  it.each<[string, unknown]>([
    ['previous_response_id', { previous_response_id: ['resp_1'] }],
    ['previous_response_id', { previous_response_id: { id: 'resp_1' } }],
    ['previous_response_id', { previous_response_id: 1 }],
    ['previous_response_id', { previous_response_id: false }],
    ['previous_response_id', '{"previous_response_id":"resp_1","previous_response_id":["theirs"]}'],
    ['conversation', { conversation: ['conv_1'] }],
    ['conversation', { conversation: 7 }],
    ['conversation', { conversation: { id: ['conv_1'] } }],
    ['conversation', { conversation: { id: 7 } }],
    ['file_id', { input: [{ role: 'user', content: [{ type: 'input_file', file_id: ['cfile_1'] }] }] }],
    ['file_id', { input: [{ role: 'user', content: [{ type: 'input_file', file_id: { id: 'x' } }] }] }],
    ['file_ids', { tools: [{ type: 'code_interpreter', container: { type: 'auto', file_ids: [7] } }] }],
    ['file_ids', { tools: [{ type: 'code_interpreter', container: { type: 'auto', file_ids: [['x']] } }] }],
    [
      'file_ids',
      { tools: [{ type: 'code_interpreter', container: { type: 'auto', file_ids: { 0: 'x' } } }] },
    ],
    ['container', { tools: [{ type: 'code_interpreter', container: ['cntr_1'] }] }],
    ['container', { tools: [{ type: 'code_interpreter', container: 7 }] }],
    ['container_id', { input: [{ type: 'code_interpreter_call', id: 'ci_1', container_id: ['x'] }] }],
    ['input', { input: [{ type: 'item_reference', id: ['msg_1'] }] }],
    ['input', { input: [{ id: 7 }] }],
  ])('%s that is no text is refused where consumers are apart: %j', (param, body) => {
    expect(ask(known(), body)).toBe(`invalid_id ${param}`);
    // Without consumers there is nobody to keep apart: the provider says what it thinks of it.
    expect(ask(known(), body, null, false)).not.toMatch(/invalid_id/);
  });

  it('looks no further than the first id that is not there', () => {
    const body = `{"input":[{"id":"theirs"},{"id":["x"]}]}`;
    expect(ask(known(), body)).toBe('previous_response_not_found input');
    expect(ask(known(), '{"input":[{"id":["x"]},{"id":"theirs"}]}')).toBe('invalid_id input');
  });

  it('refuses what lives at two upstreams at once', () => {
    const issued = known();
    issued.learn(idsIn({ id: 'resp_2' }), red, B);
    expect(ask(issued, { previous_response_id: 'resp_2' })).toBe('b');
    expect(ask(issued, { previous_response_id: 'resp_2', tools: [{ type: 'x', container: 'cntr_1' }] })).toBe(
      'previous_response_not_found container',
    );
  });

  it('lets nobody take over an id that somebody else has', () => {
    const issued = known();
    issued.learn(idsIn({ id: 'resp_1' }), blue, B);
    expect(ask(issued, { previous_response_id: 'resp_1' })).toBe('a');
    expect(ask(issued, { previous_response_id: 'resp_1' }, blue)).toMatch(/not_found/);
  });

  it('gives what the same issuer told to several to each of them, but not the id of a response', () => {
    const issued = known();
    const file = { input: [{ role: 'user', content: [{ type: 'input_file', file_id: 'file_1' }] }] };
    const answer = (id: string) => ({ id, output: [{ results: [{ file_id: 'file_1' }] }] });
    const green = consumer('green');
    for (const [who, from] of [
      [red, A],
      [blue, A],
      [green, B],
    ] as const)
      issued.learn(idsIn(answer(`resp_${who.id}`)), who, from, `resp_${who.id}`);
    expect([ask(issued, file, red), ask(issued, file, blue)]).toEqual(['a', 'a']);
    expect(ask(issued, file, green)).toMatch(/not_found/);
    issued.learn(idsIn(answer('resp_red')), red, A, 'resp_red');
    expect(ask(issued, file, blue)).toBe('a');
    issued.learn(idsIn({ id: 'resp_1' }), blue, A, 'resp_1');
    expect(ask(issued, { previous_response_id: 'resp_1' }, blue)).toMatch(/not_found/);
  });

  it('tells the key that was issued it, too', () => {
    const issued = new IssuedIds();
    issued.learn(['resp_1'], red, A);
    issued.learn(['resp_2'], red, B);
    const pinned = (id: string) => issued.pinnedUpstream(doc({ previous_response_id: id }), red, true);
    expect(pinned('resp_1')).toMatchObject({ upstream: 'a', key: null });
    expect(pinned('resp_2')).toMatchObject({ upstream: 'b', key: 'second' });
  });
});
