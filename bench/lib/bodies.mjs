// Request bodies of the sizes that the scenarios name. `model` stands first, the short fields last, as SDKs send them.
// Mostly ASCII with a few words of other scripts, as conversations are: one such letter makes a JavaScript string twice
// as wide, and parsing and writing JSON several times as dear.
const SENTENCE =
  'The scheduler kept one slot per card, so the second request waited; "why not spill?", asked the reviewer — «почему нет?», 为什么不呢?\n' +
  "```js\nconst lease = claim(candidates);\nif (!lease) return 'busy';\n```\n";

export function chat({ model, messages, stream = false, extra = {} }) {
  return JSON.stringify({ model, messages, ...extra, stream });
}

/** About 400 bytes. */
export function small(model, stream = false) {
  return chat({
    model,
    stream,
    messages: [
      {
        role: 'system',
        content: 'You are a helpful assistant. Answer briefly, and say so when you do not know.',
      },
      {
        role: 'user',
        content: 'What is two plus two, and has it ever been anything else? Answer in one sentence.',
      },
    ],
    extra: { temperature: 0.7, max_tokens: 256, top_p: 1, user: 'bench-user-0001', presence_penalty: 0 },
  });
}

/** A conversation of `count` turns that is about `bytes` long as JSON. */
export function conversation({ model, bytes, count, seed = '' }) {
  const perMessage = Math.floor(bytes / count) - 40;
  const text = SENTENCE.repeat(Math.ceil(perMessage / SENTENCE.length) + 1);
  const escaped = Buffer.byteLength(JSON.stringify(SENTENCE)) / SENTENCE.length;
  const messages = Array.from({ length: count }, (_, i) => ({
    role: i % 2 === 0 ? 'user' : 'assistant',
    content: `${seed}${i} ${text.slice(0, Math.floor(perMessage / escaped))}`,
  }));
  return chat({ model, messages, extra: { temperature: 0.7, max_tokens: 256 } });
}

/** Base64 pictures, as vision clients send them, with some text around. */
export function pictures({ model, bytes, count = 5 }) {
  const raw = Buffer.allocUnsafe(Math.floor(((bytes / count) * 3) / 4) - 300);
  for (let i = 0; i < raw.length; i += 1) raw[i] = (i * 2_654_435_761) >>> 13;
  const url = `data:image/png;base64,${raw.toString('base64')}`;
  const content = Array.from({ length: count }, (_, i) => [
    { type: 'text', text: `Picture ${i}: ${SENTENCE}` },
    { type: 'image_url', image_url: { url, detail: 'high' } },
  ]).flat();
  return chat({ model, messages: [{ role: 'user', content }], extra: { max_tokens: 256 } });
}
