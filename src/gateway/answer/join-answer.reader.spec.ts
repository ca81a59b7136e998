import { describe, expect, it } from 'vitest';
import { RecordingHost } from '../../../test/support/recording-host.js';
import { JoinAnswerReader } from './join-answer.reader.js';

function read(...texts: readonly string[]): RecordingHost {
  const host = new RecordingHost();
  const reader = new JoinAnswerReader(host, null, true);
  for (const text of texts) reader.data(Buffer.from(text));
  reader.end();
  return host;
}

const event = (delta: string): string => `data: {"choices":[{"delta":${delta}}]}\n\n`;

describe('JoinAnswerReader', () => {
  it('sends what it joined with its last byte', () => {
    const { verdicts, failure, commitOptions } = read(event('{"content":"a"}'), event('{"content":"b"}'));
    expect([verdicts, failure]).toEqual([['commit', 'ok'], null]);
    expect(commitOptions?.kind).toBe('json');
  });

  it('fails an answer that is too much to join, with the reason', () => {
    const members = Array.from({ length: 100_001 }, (_, i) => `"${i}":{}`).join();
    const large = event(`{"x":{${members}}}`);
    expect(read(large).failure).toBeNull();
    expect(read(large, large, event('{"content":"a"}')).failure).toEqual({
      result: 'net_err',
      status: 200,
      reason: 'an object of the stream has more than 100000 members to join',
    });
  });

  it.each([
    ['an error', '{"error":{"message":"overloaded","code":503}}'],
    ['a page', '<html>502 Bad Gateway</html>\n\n'],
    ['a whole answer', '{"choices":[{"index":0,"message":{"content":"x"}}]}'],
  ])('fails what is called a stream and is %s', (_what, text) => {
    const alone = read(text).failure;
    expect(alone).toMatchObject({ result: 'net_err', reason: 'stream with lines that are no event' });
    expect(read(event('{"content":"a"}'), text).failure).toEqual(alone);
    expect(read(event('{"content":"a"}'), 'data: [DONE]\n\n', text).failure).toBeNull();
  });

  it('passes over comments and fields without data', () => {
    const { failure } = read(': wait\n\nevent: ping\n\n', event('{"content":"a"}'), 'retry: 5\n\n');
    expect(failure).toBeNull();
  });

  it('fails an event of a million empty lines as any other that cannot be read', () => {
    const host = read(`${'data:\n'.repeat(1_000_000)}\n`);
    expect(host.failure?.reason).toBe('stream without an answer');
  });
});
