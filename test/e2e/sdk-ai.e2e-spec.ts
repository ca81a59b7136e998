import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText, streamText } from 'ai';
import { describe, expect, it } from 'vitest';
import { completion, DONE, delta, event, finish, usage } from '../support/answers.js';
import { stage, type Stage } from '../support/stage.js';

const split = { provider: { think_tags: 'split' } };
const modelOf = (set: Stage, name = 'm') =>
  createOpenAICompatible({ name: 'llm-proxy', baseURL: `${set.gateway.url}/v1`, apiKey: 'x' })(name);

describe('the AI SDK', () => {
  it('generates text, with the reasoning of think tags', async () => {
    const set = await stage(split);
    set.a.next((_r, answer) => answer.json(200, completion('<think>why</think>so')));
    const result = await generateText({ model: modelOf(set), prompt: 'hi', maxRetries: 0 });
    expect([result.text, result.reasoningText]).toEqual(['so', 'why']);
    expect(result.usage).toMatchObject({ inputTokens: 7, outputTokens: 5 });
  });

  it('streams text, with the reasoning of think tags', async () => {
    const set = await stage(split);
    set.a.next((_r, answer) =>
      answer.sse([
        delta({ role: 'assistant', content: '' }),
        ...['<th', 'ink>because', ' of this</thi', 'nk>', 'so it', ' is'].map((text) => delta(text)),
        finish(),
        event({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'real', choices: [], usage }),
        DONE,
      ]),
    );
    const result = streamText({ model: modelOf(set), prompt: 'hi', maxRetries: 0 });
    let text = '';
    let reasoning = '';
    for await (const part of result.fullStream) {
      if (part.type === 'text-delta') text += part.text;
      if (part.type === 'reasoning-delta') reasoning += part.text;
    }
    expect([text, reasoning]).toEqual(['so it is', 'because of this']);
    expect(await result.finishReason).toBe('stop');
    expect(await result.usage).toMatchObject({ inputTokens: 7, outputTokens: 5 });
  });

  it('raises our errors', async () => {
    const set = await stage();
    await expect(
      generateText({ model: modelOf(set, 'none'), prompt: 'hi', maxRetries: 0 }),
    ).rejects.toMatchObject({
      statusCode: 404,
      message: expect.stringContaining('none'),
    });
  });

  it('reports an interrupted stream', async () => {
    const set = await stage();
    set.a.next(async (_r, answer) => {
      await answer.sseHead();
      await answer.write(delta('half'));
      answer.destroy();
    });
    const result = streamText({ model: modelOf(set), prompt: 'hi', maxRetries: 0, onError: () => {} });
    const kinds: string[] = [];
    for await (const part of result.fullStream) kinds.push(part.type);
    expect(kinds).toContain('error');
  });
});
