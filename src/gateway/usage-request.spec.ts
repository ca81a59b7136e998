import { describe, expect, it } from 'vitest';
import { JsonDocument } from '../common/json/json-document.js';
import { askForUsage } from './usage-request.js';

describe('askForUsage', () => {
  it.each([
    ['{"stream":true}', '{"stream":true,"stream_options":{"include_usage":true}}', true],
    [
      '{"stream":true,"stream_options":null}',
      '{"stream":true,"stream_options":{"include_usage":true}}',
      true,
    ],
    [
      '{"stream":true, "stream_options" : { "include_obfuscation":false , "x":1e5} }',
      '{"stream":true, "stream_options" : { "include_obfuscation":false , "x":1e5,"include_usage":true} }',
      true,
    ],
    [
      '{"stream":true,"stream_options":{"include_usage":false}}',
      '{"stream":true,"stream_options":{"include_usage":true}}',
      true,
    ],
    [
      '{"stream":true,"stream_options":{"include_usage":true}}',
      '{"stream":true,"stream_options":{"include_usage":true}}',
      false,
    ],
    ['{"stream":true,"stream_options":"x"}', '{"stream":true,"stream_options":"x"}', false],
    ['{"stream":false}', '{"stream":false}', false],
    ['{}', '{}', false],
    ['{"stream":"true"}', '{"stream":"true"}', false],
  ])('%s → %s', (given, wanted, asked) => {
    const body = JsonDocument.parse(Buffer.from(given));
    expect(askForUsage(body)).toBe(asked);
    expect(JSON.parse(body.toBuffer().toString())).toEqual(JSON.parse(wanted));
    if (wanted.includes('1e5'))
      expect(body.toBuffer().toString()).toContain('"include_obfuscation":false , "x":1e5');
  });
});
