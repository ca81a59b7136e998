import { describe, expect, it } from 'vitest';
import { delta, DONE } from '../../../test/support/answers.js';
import { RecordingHost } from '../../../test/support/recording-host.js';
import { CHAT } from '../../contracts/operation.js';
import { bodyMask } from '../secret-mask.js';
import type { AnswerReader } from './answer-reader.js';
import { chooseReader } from './choose-reader.js';

const SECRET = 'sk-abcdefghijklmnop';
const error = `data: ${JSON.stringify({ error: { message: `Incorrect key ${SECRET}.` } })}\n\n`;
const masked = error.replace(SECRET, 'sk-…mnop');

function open(): { host: RecordingHost; reader: AnswerReader } {
  const host = new RecordingHost(200, { 'content-type': 'text/event-stream' });
  const reader = chooseReader(host, {
    clientWantsStream: true,
    streamAsked: true,
    barrier: false,
    continuation: null,
    maskBytes: bodyMask([SECRET]),
    wallClockMs: () => 0,
    classify: null,
    operation: CHAT,
    requestId: 'req',
  });
  return { host, reader };
}

function read(...pieces: string[]): RecordingHost {
  const { host, reader } = open();
  for (const piece of pieces) reader.data(Buffer.from(piece));
  reader.end();
  return host;
}

describe('an error at the very start of a stream', () => {
  it('shows no key of ours, however it is cut', () => {
    for (let at = error.indexOf('"error"') + 7; at <= error.length; at++) {
      const host = read(error.slice(0, at), error.slice(at), DONE);
      expect(host.sink.text).toBe(masked + DONE);
      expect(host.verdicts).toEqual(['commit', 'ok']);
      expect(host.commitOptions?.bodyChanged).toBe(true);
    }
    expect(read(error.trimEnd()).sink.text).toBe(masked.trimEnd());
    expect(read(error.replaceAll('\n', '\r\n')).sink.text).toBe(masked.replaceAll('\n', '\r\n'));
  });

  it.each([': a comment\n\n', 'event: error\n', ': a\n\nevent: error\nid: 1\n'])(
    'shows none behind what says nothing: %j',
    (before) => {
      expect(read(before, error, DONE).sink.text).toBe(before + masked + DONE);
      expect(read(before, ': b\n\n', error, DONE).sink.text).toBe(`${before}: b\n\n${masked}${DONE}`);
    },
  );

  it('is held no longer than its event, and only where it may be one', () => {
    const { host, reader } = open();
    reader.data(Buffer.from('data: {"error":'));
    expect(host.verdicts).toEqual([]);
    reader.data(Buffer.from('null}\n\ndata: {"ch'));
    expect(host.sink.text).toBe('data: {"error":null}\n\ndata: {"ch');
    const plain = open();
    plain.reader.data(Buffer.from('data: {"choices":'));
    expect(plain.host.sink.text).toBe('data: {"choices":');
    const long = open();
    long.reader.data(Buffer.from(`data: {"error":"${'x'.repeat(70_000)}`));
    expect(long.host.verdicts).toEqual(['commit']);
  });

  it('that breaks off while it is held is a failure before the first byte', () => {
    const { host, reader } = open();
    reader.data(Buffer.from('data: {"error":"half'));
    reader.broken({ result: 'net_err', reason: 'reset' });
    expect(host.verdicts).toEqual(['fail net_err']);
    expect(host.sink.text).toBe('');
    expect(read('data: {"error":"half').verdicts).toEqual(['fail net_err']);
  });

  it('changes nothing else: what holds no key, and what comes later', () => {
    const other = 'data: {"error":{"message":"no"}}\n\n';
    const host = read(other, DONE);
    expect(host.sink.text).toBe(other + DONE);
    expect(host.commitOptions?.bodyChanged).toBe(false);
    expect(read(delta('a'), error).sink.text).toBe(delta('a') + error);
  });
});
