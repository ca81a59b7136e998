import { describe, expect, it } from 'vitest';
import { chunk, delta, DONE, event, finish, usage } from '../../../test/support/answers.js';
import { ContinuedStream } from '../../../test/support/continued-stream.js';
import { JsonDocument } from '../../common/json/json-document.js';
import { SseEvent } from '../../common/sse/sse-event.js';
import type { StreamTransform } from '../../contracts/stream.js';
import { RelayedAnswer } from './relayed-answer.js';

const ROLE = delta({ role: 'assistant', content: '' });
const SWITCHED = ': llm-proxy switched upstream\n\n';
const ERROR = event({ error: { message: 'overloaded' } });

function begin(body: object = {}, transforms?: () => StreamTransform[]): ContinuedStream {
  const request = { model: 'm', stream: true, messages: [], ...body };
  const answer = RelayedAnswer.of(JsonDocument.parse(Buffer.from(JSON.stringify(request))));
  if (answer === null) throw new Error('this request is not to be continued');
  return new ContinuedStream(answer, transforms);
}

/** As the second upstream says it: everything under names of its own. */
function other(of: string | object, choice: object = {}): string {
  const inner = { delta: typeof of === 'string' ? { content: of } : of, ...choice };
  return event({ ...chunk(inner), id: 'other', created: 9, model: 'other-model', fingerprint: 'f' });
}

describe('a stream that another upstream continues', () => {
  it('relays the first one untouched', () => {
    const stream = begin();
    const all = ': hi\n\n' + ROLE + delta('a') + finish() + DONE;
    stream.say([all.slice(0, 50), all.slice(50)], 'end');
    expect(stream.sent).toBe(all);
    expect(stream.last.verdicts).toEqual(['commit', 'ok']);
  });

  it('marks the place, keeps the name of the first answer, and gives no second role', () => {
    const stream = begin();
    expect(stream.say([ROLE, delta('Hello ')], 'break').verdicts).toEqual(['commit', 'suspended net_err']);
    const second = [
      other({ role: 'assistant', content: '' }),
      other('world'),
      other({}, { finish_reason: 'stop' }),
    ];
    stream.say([...second, event({ id: 'other', choices: [], usage }), DONE], 'end');
    expect(stream.text()).toBe('Hello world');
    expect(stream.sent).toBe(
      ROLE +
        delta('Hello ') +
        SWITCHED +
        event({ ...chunk({ delta: { content: 'world' } }), fingerprint: 'f' }) +
        event({ ...chunk({ delta: {}, finish_reason: 'stop' }), fingerprint: 'f' }) +
        event({ id: 'c1', choices: [], usage, created: 1, model: 'real' }) +
        DONE,
    );
    expect(stream.last.verdicts).toEqual(['commit', 'ok']);
  });

  it.each([
    [1024, 'Hello '],
    [1025, 'Hello Hel'],
  ])('holds a bounded number of events behind what may be an echo: %i', (count, text) => {
    const stream = begin();
    stream.say([ROLE, delta('Hello ')], 'break');
    const thoughts = Array.from({ length: count }, (_, i) => other({ reasoning_content: `t${i} ` }));
    stream.say([other('Hel'), ...thoughts], 'break');
    expect(stream.text()).toBe(text);
  });

  it('keeps a bounded text: what is longer is relayed, and not to be continued', () => {
    const stream = begin();
    const mebi = delta('x'.repeat(1024 * 1024));
    stream.say(
      Array.from({ length: 9 }, () => mebi),
      'break',
    );
    expect(stream.last.verdicts).toEqual(['commit', 'interrupted net_err']);
    expect(stream.text()).toHaveLength(9 * 1024 * 1024);
    expect(stream.answer.text.length).toBeLessThanOrEqual(8 * 1024 * 1024);
    expect(stream.answer.continuable).toBe(false);
  });

  it('relays whole events only', () => {
    const stream = begin();
    const first = delta('a') + delta('lost').slice(0, -6);
    stream.say([first], 'break');
    expect(stream.sent).toBe(delta('a'));
    expect(stream.answer.text).toBe('a');
  });

  it.each(['data: {"id', 'da', 'data: [DO', delta('lost').slice(0, -5), 'event: e\ndata: '])(
    'a clean end within an event is a break: %j',
    (half) => {
      const stream = begin();
      expect(stream.say([delta('a') + half], 'end').verdicts).toEqual(['commit', 'suspended net_err']);
      expect(stream.sent).toBe(delta('a'));
      expect(stream.say([half], 'end').verdicts).toEqual(['fail net_err']);
      stream.say([other('b'), other({}, { finish_reason: 'stop' }), half], 'end');
      expect(stream.text()).toBe('ab');
      expect(stream.sent.endsWith(DONE)).toBe(true);
      expect(stream.sent).not.toContain(half + '\n');
    },
  );

  it.each([DONE.trimEnd(), finish().trimEnd(), ': bye', ''])(
    'a clean end behind a whole event is the end, blank line or not: %j',
    (last) => {
      const stream = begin();
      expect(stream.say([delta('a') + last], 'end').verdicts).toEqual(['commit', 'ok']);
      expect(stream.sent).toBe(delta('a') + last);
    },
  );

  it('an event that broke off before its blank line was never whole', () => {
    const stream = begin();
    stream.say([delta('a').trimEnd()], 'break');
    stream.say([other('b')], 'end');
    expect(stream.events.map(({ data }) => data ?? '').filter((data) => data !== '')).toHaveLength(1);
  });

  it('a continuation that fails before it says anything leaves no trace', () => {
    const stream = begin();
    stream.say([delta('a')], 'break');
    expect(stream.say([': hi\n\n', other({ role: 'assistant' })], 'break').verdicts).toEqual([
      'fail net_err',
    ]);
    expect(stream.say([ERROR], 'end').verdicts).toEqual(['fail 5xx']);
    expect(stream.say([other({ role: 'assistant' })], 'end').verdicts).toEqual(['fail net_err']);
    expect(stream.sent).toBe(delta('a'));
    stream.say([other('b'), DONE], 'end');
    expect(stream.text()).toBe('ab');
    expect(stream.sent.split(SWITCHED)).toHaveLength(2);
  });

  it('goes on as often as it takes', () => {
    const stream = begin();
    stream.say([delta('a')], 'break');
    expect(stream.say([other('b'), other('c')], 'break').verdicts).toEqual(['commit', 'suspended net_err']);
    stream.say([other('d'), DONE], 'end', [stream.answer.text]);
    expect(stream.text()).toBe('abcd');
    expect(stream.sent.split(SWITCHED)).toHaveLength(3);
  });

  it('an error event is a break', () => {
    const stream = begin();
    expect(stream.say([delta('a') + ERROR + delta('b')], 'end').verdicts).toEqual([
      'commit',
      'suspended 5xx',
    ]);
    expect(stream.sent).toBe(delta('a'));
  });

  it('shows the error event of a break to no stage, and sends nothing of what one holds', () => {
    const seen: string[] = [];
    const stream = begin({}, () => [
      {
        needles: null,
        push: (one, emit) => {
          seen.push(one.raw.toString());
          emit(one);
        },
        flush: (emit) => emit(new SseEvent(Buffer.from(delta('held')))),
        whole: () => {},
      },
    ]);
    stream.say([delta('a') + ERROR + delta('b')], 'end');
    expect(seen).toEqual([delta('a')]);
    expect(stream.sent).toBe(delta('a'));
    expect(Buffer.concat([...stream.answer.withheld]).toString()).toBe(delta('held'));
  });

  it.each<[string, string, string[]]>([
    ['tool calls', 'tool_calls', [delta('a'), delta({ tool_calls: [{ index: 0, id: 'x' }] })]],
    ['a function call', 'tool_calls', [delta({ function_call: { name: 'f' } })]],
    ['only reasoning', 'content', [ROLE, delta({ reasoning_content: 'hm' })]],
    ['a refusal', 'content', [delta({ refusal: 'no' })]],
    ['content in parts', 'content', [delta({ content: [{ type: 'text', text: 'a' }] })]],
    ['a second choice', 'content', [delta('a'), delta('b', { index: 1 })]],
    ['data that nobody can read', 'content', [delta('a'), 'data: {"choices\n\n']],
  ])('is not continued behind %s', (_name, phase, pieces) => {
    const stream = begin();
    const host = stream.say(pieces, 'break');
    expect(host.verdicts).toEqual(['commit', 'interrupted net_err']);
    expect(host.phase).toBe(phase);
    expect(host.sink.ending).toBe('endInterrupted');
    expect(stream.sent).toContain('upstream_stream_interrupted');
    expect(stream.sent).not.toContain('[DONE]');
  });

  it('is continued behind reasoning that led to text', () => {
    const stream = begin();
    const host = stream.say([delta({ reasoning_content: 'hm' }), delta('a')], 'break');
    expect(host.verdicts).toEqual(['commit', 'suspended net_err']);
    expect(stream.answer.text).toBe('a');
  });

  it('begins anew where only a role was sent', () => {
    const stream = begin();
    const host = stream.say([ROLE], 'break');
    expect(host.verdicts).toEqual(['commit', 'suspended net_err']);
    expect(host.phase).toBe('before_content');
    stream.say([other({ role: 'assistant', content: 'a' }), DONE], 'end');
    expect(stream.text()).toBe('a');
    expect(stream.text('role')).toBe('assistant');
  });

  it.each<[string, string[], string]>([
    ['the finish reason', [delta('a'), finish()], delta('a') + finish() + DONE],
    [
      'the usage',
      [delta('a'), finish(), event({ choices: [], usage })],
      delta('a') + finish() + event({ choices: [], usage }) + DONE,
    ],
    ['[DONE]', [delta('a'), finish(), DONE], delta('a') + finish() + DONE],
    ['[DONE] without a finish reason', [delta('a'), DONE], delta('a') + DONE],
    [
      'a tool call that is complete',
      [delta({ tool_calls: [{}] }), finish('tool_calls')],
      delta({ tool_calls: [{}] }) + finish('tool_calls') + DONE,
    ],
  ])('a break behind %s is the end of a whole answer', (_name, pieces, sent) => {
    const stream = begin();
    const host = stream.say(pieces, 'break');
    expect(stream.sent).toBe(sent);
    expect(host.sink.ending).toBe('end');
    const isDone = pieces.at(-1) === DONE;
    expect(host.verdicts).toEqual(['commit', isDone ? 'ok' : 'interrupted net_err']);
    if (!isDone) expect(host.phase).toBe('after_finish');
  });

  it('nobody goes on where this side ends the answer', () => {
    const stream = begin();
    const { host, reader } = stream.next();
    reader.data(Buffer.from(delta('a')));
    host.continuable = false;
    reader.broken({ result: 'cancelled', reason: 'shutting_down' });
    expect(host.sink.ending).toBe('endInterrupted');
  });

  it.each([{ n: 2 }, { stream: false }, { messages: 'none' }, { messages: undefined }])(
    'is not for a request with %o',
    (body) => {
      expect(() => begin(body)).toThrow('not to be continued');
    },
  );
});

describe('an echo of the text', () => {
  /** Two upstreams: the first says `begun`, the second these pieces. */
  function continued(begun: string, pieces: readonly string[], echoes?: readonly string[]): ContinuedStream {
    const stream = begin();
    stream.say([ROLE, delta(begun)], 'break');
    stream.say(pieces, 'end', echoes);
    return stream;
  }

  it.each<[string, string[]]>([
    ['in an event of its own', [other('Hello wor'), other('ld')]],
    ['with the rest behind it', [other('Hello world')]],
    ['in pieces', [other('Hel'), other('lo '), other('world')]],
    ['with the role', [other({ role: 'assistant', content: 'Hello wor' }), other('ld')]],
    ['behind a chunk without choices', [event({ choices: [], filter: [] }), other('Hello world')]],
    ['behind reasoning', [other({ reasoning_content: 'hm' }), other('Hello world')]],
  ])('is dropped: %s', (_name, pieces) => {
    const stream = continued('Hello wor', [...pieces, other({}, { finish_reason: 'stop' }), DONE]);
    expect(stream.text()).toBe('Hello world');
    expect(stream.sent.match(/\[DONE\]/g)).toHaveLength(1);
  });

  it('with which the answer ends leaves the end', () => {
    const stream = continued('Hello', [other('Hello', { finish_reason: 'stop' }), DONE]);
    expect(stream.text()).toBe('Hello');
    expect(stream.sent).toContain('"finish_reason":"stop"');
  });

  it.each<[string, string[], string]>([
    ['only a part of it is new text', [other('Hello')], 'Hello worHello'],
    ['only its end is new text', [other('wor'), other('ld')], 'Hello worworld'],
    ['what differs in one character is new text', [other('Hello'), other(' war')], 'Hello worHello war'],
    ['another case is new text', [other('hello wor')], 'Hello worhello wor'],
  ])('%s', (_name, pieces, text) => {
    expect(continued('Hello wor', [...pieces, other({}, { finish_reason: 'stop' }), DONE]).text()).toBe(text);
    expect(continued('Hello wor', pieces).text()).toBe(text);
  });

  it('may hold the beginning that the client itself gave', () => {
    const echoes = ['Say: Hello wor', 'Hello wor'];
    expect(continued('Hello wor', [other('Say: Hel'), other('lo world')], echoes).text()).toBe('Hello world');
    expect(continued('Hello wor', [other('Hello world')], echoes).text()).toBe('Hello world');
    expect(continued('Hello wor', [other('Say: Helo')], echoes).text()).toBe('Hello worSay: Helo');
  });

  it('that is still undecided when the upstream breaks was never part of the answer', () => {
    const stream = begin();
    stream.say([delta('Hello wor')], 'break');
    expect(stream.say([other('Hello')], 'break').verdicts).toEqual(['fail net_err']);
    expect(stream.text()).toBe('Hello wor');
    stream.say([other('ld'), DONE], 'end');
    expect(stream.text()).toBe('Hello world');
  });

  it('keeps what else its events carry', () => {
    const pieces = [other('Hello'), event({ ...chunk({ delta: { content: ' wor' } }), usage }), other('ld')];
    const stream = continued('Hello wor', pieces);
    expect(stream.text()).toBe('Hello world');
    expect(stream.sent).toContain('prompt_tokens');
  });
});
