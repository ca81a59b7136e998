import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { allUpstreams } from '../../common/errors/catalogue.js';
import { parseSse } from '../../../test/support/sse-text.js';
import { chunkEvents, errorEvent, refusalEvent } from './in-band.js';

const bytes = (text: string): Buffer[] => [Buffer.from(text)];
const text = (parts: readonly Buffer[] | Buffer): string =>
  Buffer.isBuffer(parts) ? parts.toString() : Buffer.concat(parts as Buffer[]).toString();
const seen = (parts: readonly Buffer[] | Buffer) => parseSse(text(parts));

describe('errorEvent', () => {
  it('is the error of the body with the status it would have had', () => {
    const [event, ...rest] = seen(errorEvent(allUpstreams('busy', 1000, [])));
    expect(rest).toEqual([]);
    expect(event?.json).toMatchObject({
      error: { status: 503, code: 'all_upstreams_busy', message: 'all upstreams busy', attempts: [] },
    });
  });
});

describe('refusalEvent', () => {
  it.each([
    ['{"error":{"message":"m","code":7,"x":1}}', { message: 'm', code: 7, x: 1, status: 422 }],
    ['{"error":"too long"}', { message: 'too long', code: 'upstream_refused', status: 422 }],
    ['{"object":"error","message":"m"}', { message: 'm', status: 422 }],
    ['{"detail":"m"}', { message: 'm', status: 422 }],
    ['{"detail":[{"loc":[]}]}', { message: 'The provider refused the request.', status: 422 }],
    ['<html>no</html>', { message: 'The provider refused the request.', status: 422 }],
    ['', { message: 'The provider refused the request.', status: 422 }],
  ])('%s', (body, error) => {
    expect(seen(refusalEvent(422, bytes(body)))[0]?.json).toMatchObject({ error });
  });
});

describe('chunkEvents', () => {
  it('makes one chunk of a completion, whose values keep their bytes', () => {
    const body = `{
      "id": "c", "object": "chat.completion", "created": 12345678901234567890,
      "choices": [{ "index": 0, "message": { "role": "assistant", "content": "a\\u00e9\\nb",
        "tool_calls": [{ "id": "t", "function": { "arguments": "{\\n}" } }, { "index": 7 }] },
        "finish_reason": "stop" }],
      "usage": { "total_tokens": 1.0 } }`;
    const out = text(chunkEvents(bytes(body)));
    const [chunk, done, ...rest] = parseSse(out);
    expect([done?.data, rest]).toEqual(['[DONE]', []]);
    expect(chunk?.json).toMatchObject({
      object: 'chat.completion.chunk',
      choices: [
        {
          index: 0,
          delta: { role: 'assistant', content: 'aé\nb', tool_calls: [{ id: 't', index: 0 }, { index: 7 }] },
          finish_reason: 'stop',
        },
      ],
    });
    for (const kept of ['12345678901234567890', '"a\\u00e9\\nb"', '"total_tokens": 1.0'])
      expect(out).toContain(kept);
  });

  it('passes what is no completion as the one event, and nothing as nothing', () => {
    expect(seen(chunkEvents(bytes('[1,\r\n2]'))).map(({ data }) => data)).toEqual(['[1,  2]', '[DONE]']);
    expect(text(chunkEvents([]))).toBe('data: [DONE]\n\n');
  });

  it('gives the same JSON for any value, however its white space is cut', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.nat(), (value, at) => {
        const whole = Buffer.from(JSON.stringify(value, null, 1));
        const cut = at % (whole.length + 1);
        const [chunk] = seen(chunkEvents([whole.subarray(0, cut), whole.subarray(cut)]));
        expect(chunk?.json).toEqual(JSON.parse(JSON.stringify(value)));
      }),
    );
  });
});
