const JSON_HEADER = `-H 'content-type: application/json'`;

const bodyOf = (model, content, more = {}) =>
  JSON.stringify({ model, ...more, messages: [{ role: 'user', content }] });

/** The three lines to try, and what each one shows. */
export function thingsToTry(origin) {
  const chat = (options, body) => `curl ${options} ${origin}/v1/chat/completions ${JSON_HEADER} -d '${body}'`;
  const streamed = bodyOf('demo', 'Why is the sky blue?', { stream: true });
  const asked = bodyOf('demo', 'What is a slot?', { stream: true });
  const reasoned = bodyOf('thinker', 'How much is 6*7?');
  const twice = `for i in 1 2; do ${chat('-s -o /dev/null -D -', asked)} | grep -i x-llm-proxy-upstream & done; wait`;
  return `
The gateway listens on ${origin}. Three things to try in another terminal:

1. Word by word through the local GPU, which serves one request at a time:

${chat('-N', streamed)}

2. Two at once: the GPU has one slot, so the second request goes to the paid provider (see x-llm-proxy-upstream):

${twice}

3. The paid provider thinks aloud in <think> tags; here its thoughts arrive as reasoning_content, apart from content:

${chat('-s', reasoned)}

Ask for the model "cheap" a few times and see in the log below how 503 and 429 fail over, unseen by the client.
What was counted: curl -s ${origin}/metrics | grep llm_proxy_      End with Ctrl-C.

`;
}
