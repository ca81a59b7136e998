import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { delta, DONE, event, finish } from '../../../test/support/answers.js';
import { RecordingHost } from '../../../test/support/recording-host.js';
import { BarrierReader } from './barrier.reader.js';
import { StreamAnswerReader } from './stream-answer.reader.js';

const ROLE = delta({ role: 'assistant', content: '' });
const PING = ': ping\n\n';
const ERROR = event({ error: { message: 'no', type: 'x' } });

function reader(host: RecordingHost): BarrierReader {
  return new BarrierReader(host, () => new StreamAnswerReader(host, { decoded: false, opaque: false }), null);
}

function run(pieces: readonly (string | Buffer)[], end = true): RecordingHost {
  const host = new RecordingHost();
  const barrier = reader(host);
  for (const piece of pieces) barrier.data(Buffer.from(piece as string));
  if (end) barrier.end();
  return host;
}

describe('BarrierReader', () => {
  it('sends nothing of what means nothing, and says that nothing came', () => {
    const host = run([PING, ROLE, delta(''), PING], false);
    expect(host.sink.calls).toEqual([]);
    expect(host.tokens).toBe(0);
  });

  it('sends what was held with the first meaningful event, byte for byte', () => {
    const host = run([PING, ROLE, delta('a')], false);
    expect(host.sink.text).toBe(PING + ROLE + delta('a'));
    expect(host.tokens).toBe(1);
    expect(host.verdicts).toEqual(['commit']);
  });

  it.each<[string, string[]]>([
    ['at once', [ERROR]],
    ['behind comments and a role', [PING, ROLE, ERROR, delta('a'), DONE]],
    ['in the last event, without its blank line', [ROLE, ERROR.trimEnd()]],
  ])('an error %s is a failure that the client never sees', (_name, pieces) => {
    const host = run(pieces);
    expect(host.sink.calls).toEqual([]);
    expect(host.verdicts).toEqual(['fail 5xx']);
    expect(host.failure).toMatchObject({ status: 200, reason: 'returned an error event' });
  });

  it('an error behind the first meaningful event passes as any event', () => {
    const host = run([ROLE + delta('a') + ERROR, DONE]);
    expect(host.sink.text).toBe(ROLE + delta('a') + ERROR + DONE);
    expect(host.verdicts).toEqual(['commit', 'ok']);
  });

  it.each<[string, string[]]>([
    ['nothing', []],
    ['comments', [PING]],
    ['a role', [ROLE]],
    ['an event that nobody can read', ['data: a']],
  ])('a clean end behind %s is a whole answer', (_name, pieces) => {
    const host = run(pieces);
    expect(host.sink.text).toBe(pieces.join(''));
    expect(host.verdicts).toEqual(['commit', 'ok']);
  });

  it('a clean end within an event is a failure, and no end', () => {
    const host = run([ROLE, 'data: {"a']);
    expect(host.sink.calls).toEqual([]);
    expect(host.verdicts).toEqual(['fail net_err']);
  });

  it('a break before the first meaningful event can fail over, one behind it cannot', () => {
    const before = new RecordingHost();
    const early = reader(before);
    early.data(Buffer.from(PING + ROLE));
    early.broken({ result: 'net_err', reason: 'reset' });
    expect(before.verdicts).toEqual(['fail net_err']);
    const behind = new RecordingHost();
    const late = reader(behind);
    late.data(Buffer.from(ROLE + delta('a')));
    late.broken({ result: 'net_err', reason: 'reset' });
    expect(behind.verdicts).toEqual(['commit', 'interrupted net_err']);
  });

  it('holds 64 KiB and no more', () => {
    const host = new RecordingHost();
    const barrier = reader(host);
    const ping = Buffer.from(`: ${'x'.repeat(1020)}\n\n`);
    for (let i = 0; i < 64; i++) barrier.data(ping);
    expect(host.sink.calls).toEqual([]);
    barrier.data(ping);
    expect(host.sink.text).toHaveLength(65 * 1024);
    expect(host.tokens).toBe(1);
  });

  it('takes one event of more than 64 KiB for an answer', () => {
    const host = run([`data: ${'x'.repeat(70_000)}`], false);
    expect(host.verdicts).toEqual(['commit']);
  });

  it('hands a pause and a drain through', () => {
    const host = new RecordingHost();
    host.sink.room = 1;
    const barrier = reader(host);
    expect(barrier.data(Buffer.from(ROLE))).toBe(true);
    expect(barrier.data(Buffer.from(delta('a')))).toBe(false);
    expect(barrier.drained()).toBe(false);
  });

  it('commits at the same event wherever the bytes are cut', () => {
    const events = fc.array(
      fc.constantFrom(PING, ROLE, delta(''), delta('a'), delta('é😀'), finish(), ERROR, DONE),
      {
        minLength: 1,
        maxLength: 8,
      },
    );
    fc.assert(
      fc.property(events, fc.array(fc.nat(), { maxLength: 6 }), (list, cuts) => {
        const bytes = Buffer.from(list.join(''));
        const places = [...cuts.map((cut) => cut % bytes.length), 0, bytes.length].sort((a, b) => a - b);
        const pieces = places.slice(1).map((end, i) => bytes.subarray(places[i], end));
        const whole = run([bytes]);
        const cut = run(pieces.filter(({ length }) => length > 0));
        expect(cut.verdicts).toEqual(whole.verdicts);
        expect(cut.sink.text).toBe(whole.sink.text);
        expect(['', bytes.toString()]).toContain(cut.sink.text);
      }),
    );
  });
});
