/** Bodies of answers as providers of the OpenAI protocol send them. */

export const DONE = 'data: [DONE]\n\n';

export function event(value: unknown): string {
  return `data: ${typeof value === 'string' ? value : JSON.stringify(value)}\n\n`;
}

export function chunk(choice: object, extra: object = {}): object {
  return {
    id: 'c1',
    object: 'chat.completion.chunk',
    created: 1,
    model: 'real',
    choices: [{ index: 0, delta: {}, finish_reason: null, ...choice }],
    ...extra,
  };
}

/** One event whose delta is this content, or these members. */
export function delta(of: string | object, choice: object = {}): string {
  return event(chunk({ delta: typeof of === 'string' ? { content: of } : of, ...choice }));
}

export function finish(reason = 'stop', index = 0): string {
  return event(chunk({ index, finish_reason: reason }));
}

export const usage = { prompt_tokens: 7, completion_tokens: 5, total_tokens: 12 };

export function completion(content: unknown = 'hello', message: object = {}, extra: object = {}): object {
  return {
    id: 'cmpl-1',
    object: 'chat.completion',
    created: 1,
    model: 'real',
    choices: [{ index: 0, message: { role: 'assistant', content, ...message }, finish_reason: 'stop' }],
    usage,
    ...extra,
  };
}
