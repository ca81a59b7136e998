import { describe, expect, it } from 'vitest';
import { CHOICE_LIMIT } from '../../common/sse/stream-limit.js';
import { ThinkTagTransform } from '../../reasoning/think-tag.transform.js';
import { RecordingHost } from '../../../test/support/recording-host.js';
import { isErrorAnswer, JsonAnswerReader } from './json-answer.reader.js';
import { JsonDocument } from '../../common/json/json-document.js';

const choice = '{"message":{"content":"<think>a</think>b"}}';

function read(choices: number): { host: RecordingHost; body: string } {
  const host = new RecordingHost(200, {}, [new ThinkTagTransform('strip')]);
  const reader = new JsonAnswerReader(host, { inspected: true, decoded: false, judge: null });
  const body = `{"choices":[${Array(choices).fill(choice).join(',')}]}`;
  reader.data(Buffer.from(body));
  reader.end();
  return { host, body };
}

describe('JsonAnswerReader', () => {
  it('takes the thoughts out of as many choices as a stream may have, and fails where there are more', () => {
    const { host, body } = read(CHOICE_LIMIT);
    expect(host.verdicts).toEqual(['commit', 'ok']);
    expect(host.sink.text).toBe(body.replaceAll('<think>a</think>b', 'b'));
    const { host: other } = read(CHOICE_LIMIT + 1);
    expect(other.verdicts).toEqual(['fail net_err']);
    expect(other.failure?.reason).toBe(`the answer has more than ${CHOICE_LIMIT} choices`);
  });

  it.each([
    ['{"error":{}}', true],
    ['{"error":"x","choices":null}', true],
    ['{"error":{"a" 1}}', true],
    ['{"error":null}', false],
    ['{"error":{},"choices":[]}', false],
    ['{"choices":[]}', false],
  ])('tells an error from an answer: %s', (body, isError) => {
    expect(isErrorAnswer(JsonDocument.parse(Buffer.from(body)))).toBe(isError);
  });
});
