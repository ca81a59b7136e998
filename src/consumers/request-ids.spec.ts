import { describe, expect, it } from 'vitest';
import type { GatewayError } from '../common/errors/gateway-error.js';
import { JsonDocument } from '../common/json/json-document.js';
import type { Consumer } from '../contracts/consumer.js';
import { IssuedIds } from './issued-ids.js';

const doc = (value: unknown): JsonDocument =>
  JsonDocument.parse(Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)));
const RED = { id: 'red' } as Consumer;

function known(): IssuedIds {
  const issued = new IssuedIds();
  issued.learn(['resp_1', 'conv_1', 'msg_1', 'cfile_1', 'cntr_1', 'cntr_2', 'ci_1', 'x'], RED, {
    upstream: 'a',
    key: null,
  });
  return issued;
}
function ask(body: unknown, closed = true): string {
  try {
    return known().pinnedUpstream(doc(body), closed ? RED : null, closed)?.upstream ?? 'anywhere';
  } catch (error) {
    const { code, param } = error as GatewayError;
    return `${code} ${param}`;
  }
}

describe('what a request names', () => {
  it.each<[string, unknown]>([
    ['previous_response_id', { Previous_Response_ID: 'resp_1' }],
    ['previous_response_id', { previous_response_id: 'resp_1', previouſ_response_id: 'resp_1' }],
    ['previous_response_id', '{"previous_re\\u017fponse_id":"resp_1"}'],
    ['conversation', { Conversation: { id: 'conv_1' } }],
    ['id', { conversation: { id: 'conv_1', ID: 'conv_1' } }],
    ['input', { INPUT: [{ id: 'msg_1' }] }],
    ['instructions', { Instructions: [{ id: 'msg_1' }] }],
    ['id', { input: [{ type: 'item_reference', Id: 'msg_1' }] }],
    ['type', { input: [{ type: 'message', role: 'user', content: 'x', id: 'x', Type: 'item_reference' }] }],
    ['result', { input: [{ type: 'image_generation_call', id: 'x', result: 'x', Result: null }] }],
    ['file_id', { input: [{ role: 'user', content: [{ type: 'input_file', File_ID: 'cfile_1' }] }] }],
    ['container_id', { input: [{ type: 'code_interpreter_call', id: 'ci_1', container_Id: 'cntr_2' }] }],
    ['tools', { input: [{ type: 'x', y: 1, Tools: [{ container: 'cntr_1' }] }] }],
    ['tools', { Tools: [{ type: 'code_interpreter', container: 'cntr_1' }] }],
    ['container', { tools: [{ type: 'code_interpreter', Container: 'cntr_1' }] }],
    ['file_ids', { tools: [{ container: { type: 'auto', File_Ids: ['cfile_1'] } }] }],
    ['prompt', { Prompt: { id: 'p', variables: {} } }],
    ['variables', { prompt: { id: 'p', Variables: { doc: { file_id: 'cfile_1' } } } }],
    ['file_id', { prompt: { id: 'p', variables: { doc: { type: 'input_file', FILE_ID: 'cfile_1' } } } }],
  ])('a key that is %s but for case is refused where consumers are apart: %j', (name, body) => {
    expect(ask(body)).toBe(`miscased_key ${name}`);
    expect(ask(body, false)).not.toMatch(/miscased_key/);
  });

  it('shows such a key as it was written', () => {
    expect(() => known().pinnedUpstream(doc('{"previouſ_response_id":1}'), RED, true)).toThrow(
      'The key "previouſ_response_id" differs from "previous_response_id" only in case',
    );
  });

  it.each<[unknown]>([
    [{ metadata: { File_ID: 'x', Input: 'y' }, text: { Tools: 1 }, Store: true }],
    [{ prompt: { id: 'p', variables: { FILE_ID: 'a text', Type: 'b' } } }],
    [{ tools: [{ type: 'function', name: 'f', parameters: { properties: { File_ID: {} } } }] }],
    [{ input: [{ type: 'function_call', call_id: 'c', name: 'f', arguments: '{"File_ID":1}' }] }],
  ])('what leads to no id may be written in any case: %j', (body) => {
    expect(ask(body)).toBe('anywhere');
  });

  it.each([
    String.raw`{"input":[{"type":"message","role":"user","content":[{"type":"input_file","fi\x6ce_id":"cfile_1"}]}]}`,
    String.raw`{"input":[{"type":"item_ref\x65rence","id":"msg_1","y":1}]}`,
    String.raw`{"conversation":{"i\x64":"conv_1"}}`,
    String.raw`{"previous_response_id\u0000":"resp_1"}`,
    String.raw`{"input":[{"role":"user","content":[{"type":"input_file","file_id\u0000x":"cfile_1"}]}]}`,
  ])('what readers could read differently is no JSON where consumers are apart: %s', (body) => {
    expect(ask(body)).toMatch(/^invalid_json/);
    expect(ask(body, false)).not.toMatch(/^invalid_json/);
  });

  it.each([
    String.raw`{"metadata":{"a\x62":"\q"},"input":"x"}`,
    String.raw`{"input":[{"type":"function_call","call_id":"c","name":"f","arguments":{"a\x62":1}}]}`,
  ])('what leads to no id may be as it likes: %s', (body) => expect(ask(body)).toBe('anywhere'));
});
