import { describe, expect, it } from 'vitest';
import { AnswerIds } from './answer-ids.js';

const idsIn = (value: unknown, whole?: 'item'): string[] =>
  new AnswerIds(whole).feed(Buffer.from(JSON.stringify(value)));

describe('AnswerIds', () => {
  it('learns nothing that an answer only repeats of its request, nor what a tool wrote', () => {
    const echoed = { file_id: 'x', container_id: 'x', id: 'x', conversation: 'x', file_ids: ['x'] };
    expect(
      idsIn({
        id: 'resp_1',
        metadata: echoed,
        tools: [{ type: 'code_interpreter', container: { file_ids: ['x'] }, parameters: echoed }],
        prompt: { variables: { a: echoed } },
        input: [echoed],
        output: [
          { id: 'l', type: 'mcp_list_tools', tools: [{ input_schema: { default: echoed } }] },
          { id: 'f', type: 'file_search_call', results: [{ file_id: 'file_1', attributes: echoed }] },
          { id: 'g', type: 'function_call', arguments: JSON.stringify(echoed) },
          { id: 'h', type: 'local_shell_call', action: { type: 'exec', env: echoed } },
          { id: 'm', type: 'mcp_call', output: { x: [echoed] }, error: { content: [{ _meta: echoed }] } },
        ],
        previous_response_id: 'x',
      }),
    ).toEqual(['resp_1', 'l', 'f', 'file_1', 'g', 'h', 'm']);
  });

  it('learns an item by itself, a conversation by its name, and no id that is none', () => {
    expect(idsIn({ id: 'ci_1', container_id: 'cntr_1', outputs: [] }, 'item')).toEqual(['ci_1', 'cntr_1']);
    expect(idsIn({ id: 'x'.repeat(513), conversation: 'conv_1', output: [{ id: 7 }] })).toEqual(['conv_1']);
  });

  it('learns the same from bytes cut anywhere', () => {
    const bytes = Buffer.from(
      '{"id":"resp_1","output":[{"id":"a\\u005f1\\\\","x":"\\"","container_id":"c\\"\\\\"},{"file_id":"ü"}]}',
    );
    const whole = new AnswerIds().feed(bytes);
    expect(whole).toEqual(['resp_1', 'a_1\\', 'c"\\', Buffer.from('ü').toString('latin1')]);
    for (let cut = 0; cut <= bytes.length; cut++) {
      const ids = new AnswerIds();
      expect([...ids.feed(bytes.subarray(0, cut)), ...ids.feed(bytes.subarray(cut))]).toEqual(whole);
    }
    const ids = new AnswerIds();
    expect([...bytes].flatMap((byte) => ids.feed(Buffer.from([byte])))).toEqual(whole);
  });

  it('tells which is the id of the response itself', () => {
    const ids = new AnswerIds();
    ids.feed(Buffer.from('{"output":[{"id":"msg_1"}],"conversation":{"id":"conv_1"},"id":"resp_1"}'));
    expect(ids.responseId).toBe('resp_1');
    const item = new AnswerIds('item');
    item.feed(Buffer.from('{"id":"msg_1"}'));
    expect(item.responseId).toBeNull();
  });
});
