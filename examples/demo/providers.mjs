import { createServer } from 'node:http';
import { answerTo, questionOf, thoughtAbout, wordsOf } from './answers.mjs';

/** Time between two words; the GPU is slow on purpose, so that two requests can meet on it. */
const WORD_MS = { gpu: 70, flaky: 15, paid: 25 };
/** What the flaky provider answers, call by call; 200 means an answer. */
const FLAKY_CALLS = [200, 503, 200, 200, 429];

/**
 * Starts the three providers of the demo on free ports of the loopback interface: a slow one that serves one request
 * at a time, one that fails now and then, and one that thinks aloud in `<think>` tags. `wordMs` overrides their pace.
 */
export async function startDemoProviders({ wordMs } = {}) {
  const pace = (kind) => wordMs ?? WORD_MS[kind];
  const gpu = { active: 0, peak: 0, last: Promise.resolve() };
  let calls = 0;
  const servers = await Promise.all([
    serve(async (body, response) => {
      gpu.active++;
      gpu.peak = Math.max(gpu.peak, gpu.active);
      // One slot: who comes second waits, as in front of a real card.
      const turn = gpu.last.then(() =>
        answer(body, response, { voice: 'the local GPU', wordMs: pace('gpu') }),
      );
      gpu.last = turn.then(() => void gpu.active--);
      await turn;
    }),
    serve(async (body, response) => {
      const status = FLAKY_CALLS[calls++ % FLAKY_CALLS.length];
      if (status === 200)
        await answer(body, response, { voice: 'the flaky provider', wordMs: pace('flaky') });
      else refuse(response, status);
    }),
    serve((body, response) =>
      answer(body, response, { voice: 'the paid provider', wordMs: pace('paid'), thinks: true }),
    ),
  ]);
  const [gpuUrl, flakyUrl, paidUrl] = servers.map((server) => `http://127.0.0.1:${server.address().port}`);
  return {
    environment: { DEMO_GPU_URL: gpuUrl, DEMO_FLAKY_URL: flakyUrl, DEMO_PAID_URL: paidUrl },
    /** Most requests that the GPU ever had at once: 1 as long as somebody counts its slots. */
    gpuPeak: () => gpu.peak,
    close: () => Promise.all(servers.map((server) => closed(server))),
  };
}

function serve(handle) {
  const server = createServer((request, response) => {
    const parts = [];
    request.on('data', (part) => parts.push(part));
    request.on('end', () => {
      handle(parsed(Buffer.concat(parts)), response).catch(() => response.destroy());
    });
    response.on('error', () => {});
  });
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => resolve(server));
  });
}

function closed(server) {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}

function parsed(bytes) {
  try {
    return JSON.parse(bytes.toString('utf8'));
  } catch {
    return {};
  }
}

async function answer(body, response, { voice, wordMs, thinks = false }) {
  const question = questionOf(body);
  const text = answerTo(question, voice);
  const limit = Number.isInteger(body.max_tokens) && body.max_tokens > 0 ? body.max_tokens : Infinity;
  const words = wordsOf(thinks ? `<think>${thoughtAbout(question)}</think>${text}` : text).slice(0, limit);
  const usage = usageOf(question, words.length);
  const common = {
    id: `chatcmpl-demo-${Date.now()}`,
    created: Math.floor(Date.now() / 1000),
    model: body.model,
  };
  const finish = words.length >= limit ? 'length' : 'stop';
  if (body.stream === true) {
    await stream(response, { ...common, object: 'chat.completion.chunk' }, words, wordMs, finish, usage);
    return;
  }
  await pause(wordMs * words.length, response);
  const message = { role: 'assistant', content: words.join('') };
  const choices = [{ index: 0, message, finish_reason: finish }];
  send(response, 200, { ...common, object: 'chat.completion', choices, usage });
}

async function stream(response, common, words, wordMs, finish, usage) {
  const write = (fields) => response.write(`data: ${JSON.stringify({ ...common, ...fields })}\n\n`);
  const choice = (delta, finish_reason = null) => ({ choices: [{ index: 0, delta, finish_reason }] });
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  write(choice({ role: 'assistant', content: '' }));
  for (const word of words) {
    await pause(wordMs, response);
    if (response.destroyed) return;
    write(choice({ content: word }));
  }
  write(choice({}, finish));
  write({ choices: [], usage });
  response.end('data: [DONE]\n\n');
}

function refuse(response, status) {
  const message = status === 429 ? 'Slow down, please.' : 'The demo provider is having a moment.';
  const headers = status === 429 ? { 'retry-after': '1' } : {};
  send(response, status, { error: { message, type: 'server_error', param: null, code: null } }, headers);
}

function send(response, status, value, headers = {}) {
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(JSON.stringify(value));
}

function usageOf(question, completion_tokens) {
  const prompt_tokens = question.split(' ').length + 4;
  return { prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens };
}

/** Waits, or less when the client hangs up: a card that computes for nobody stops. */
function pause(ms, response) {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      response.off('close', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    response.on('close', done);
  });
}
