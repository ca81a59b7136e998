import { SseEvent } from 'llm-proxy/contracts';
import { describe, expect, it } from 'vitest';
import { startGateway } from './gateway-for-tests.js';
import { WordFilterPlugin } from './word-filter.js';

const PLUGINS = `[{ module: ./word-filter.js, config: { word: secret, replacement: '***' } }]`;

function filter(word: string, replacement: string): WordFilterPlugin {
  const plugin = new WordFilterPlugin();
  plugin.configure({ word, replacement });
  return plugin;
}

const chunk = (content: string, more: object = {}): string =>
  JSON.stringify({ id: 'c1', choices: [{ index: 0, delta: { content }, finish_reason: null, ...more }] });
const FINISH = JSON.stringify({ id: 'c1', choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] });

/** What the client would get, event by event. */
function through(plugin: WordFilterPlugin, events: readonly string[]): string[] {
  const transform = plugin.onResponse();
  const sent: string[] = [];
  const emit = (event: SseEvent) => void sent.push(event.data ?? '');
  for (const data of events) transform?.push(SseEvent.of(data), emit);
  transform?.flush(emit);
  return sent;
}

function textOf(events: readonly string[]): string {
  return events
    .filter((data) => data !== '[DONE]')
    .map(
      (data) =>
        (JSON.parse(data) as { choices: { delta: { content?: string } }[] }).choices[0]?.delta.content ?? '',
    )
    .join('');
}

describe('the transform of the word filter', () => {
  it('finds the word at every cut', () => {
    const text = 'a secret, an old secsecret, and a secre';
    for (let one = 0; one <= text.length; one++) {
      for (let two = one; two <= text.length; two++) {
        const pieces = [text.slice(0, one), text.slice(one, two), text.slice(two)];
        const sent = through(filter('secret', '***'), [
          ...pieces.map((piece) => chunk(piece)),
          FINISH,
          '[DONE]',
        ]);
        expect(textOf(sent)).toBe('a ***, an old sec***, and a secre');
        expect(sent.at(-1)).toBe('[DONE]');
      }
    }
  });

  it('leaves an event without the word as it came', () => {
    const odd = '{ "choices": [ {"index":0,"delta":{"content":"plain \\u00e9 1.0"}} ], "n": 1.0 }';
    expect(through(filter('secret', '***'), [odd])).toEqual([odd]);
  });

  it('gives what it held before a finish reason, usage or the end', () => {
    const usage = '{"choices":[],"usage":{"total_tokens":3}}';
    expect(textOf(through(filter('secret', '***'), [chunk('a sec')]))).toBe('a sec');
    const withUsage = through(filter('secret', '***'), [chunk('a sec'), usage]);
    expect(withUsage.at(-1)).toBe(usage);
    expect(textOf(withUsage.slice(0, -1))).toBe('a sec');
    const finished = through(filter('secret', '***'), [chunk('a sec'), FINISH]);
    expect(textOf(finished)).toBe('a sec');
    expect(finished).toHaveLength(2);
  });
});

function ask(origin: string, stream: boolean): Promise<Response> {
  return fetch(`${origin}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'm', stream, messages: [{ role: 'user', content: 'hi' }] }),
  });
}

describe('the word filter in a running gateway', () => {
  it('changes a stream', async () => {
    const origin = await startGateway(PLUGINS, (response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      for (const data of [chunk('my sec'), chunk('ret is'), FINISH, '[DONE]'])
        response.write(`data: ${data}\n\n`);
      response.end();
    });
    const body = await (await ask(origin, true)).text();
    const events = body.split('\n\n').filter((event) => event !== '');
    expect(textOf(events.map((event) => event.slice('data: '.length)))).toBe('my *** is');
    expect(events.at(-1)).toBe('data: [DONE]');
  });

  it('is refused without its word, with the place in the file', async () => {
    await expect(
      startGateway('[{ module: ./word-filter.js, config: { replacement: x } }]', () => {}),
    ).rejects.toThrow('plugins[0].config.word');
  });

  it('changes a whole answer, and nothing else in it', async () => {
    const origin = await startGateway(PLUGINS, (response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(
        '{"id":"x", "n":1.0, "choices":[{"index":0,"message":{"role":"assistant","content":"a secret"}}]}',
      );
    });
    expect(await (await ask(origin, false)).text()).toBe(
      '{"id":"x", "n":1.0, "choices":[{"index":0,"message":{"role":"assistant","content":"a ***"}}]}',
    );
  });
});
