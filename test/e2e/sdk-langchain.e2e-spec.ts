import { ChatOpenAI } from '@langchain/openai';
import { describe, expect, it } from 'vitest';
import { delta } from '../support/answers.js';
import { stage, type Stage } from '../support/stage.js';

const clientOf = (set: Stage, model = 'm'): ChatOpenAI =>
  new ChatOpenAI({ model, apiKey: 'x', maxRetries: 0, configuration: { baseURL: `${set.gateway.url}/v1` } });

describe('ChatOpenAI of LangChain', () => {
  it('invokes', async () => {
    const set = await stage();
    const answer = await clientOf(set).invoke('hi');
    expect(answer.content).toBe('hello');
    expect(answer.usage_metadata).toMatchObject({ input_tokens: 7, output_tokens: 5 });
  });

  it('streams', async () => {
    const set = await stage();
    let text = '';
    for await (const chunk of await clientOf(set).stream('hi')) text += chunk.text;
    expect(text).toBe('hello');
  });

  it('fails over unseen', async () => {
    const set = await stage({ upstreams: 2 });
    set.a.next((_r, answer) => answer.error(429));
    expect((await clientOf(set).invoke('hi')).content).toBe('hello');
    expect(set.b.requests).toHaveLength(1);
  });

  it('raises an unknown model and an interrupted stream', async () => {
    const set = await stage();
    await expect(clientOf(set, 'none').invoke('hi')).rejects.toThrow(/none/);
    set.a.next(async (_r, answer) => {
      await answer.sseHead();
      await answer.write(delta('half'));
      answer.destroy();
    });
    const read = async (): Promise<void> => {
      for await (const chunk of await clientOf(set).stream('hi')) void chunk;
    };
    await expect(read()).rejects.toThrow();
  });
});
