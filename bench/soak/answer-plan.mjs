// What the fake provider will say in one exchange, and what a client may believe of it.
import { gzipSync } from 'node:zlib';

/** Weights: `well` is a good answer; the others are faults, or good answers in unusual clothes. */
const PLANS = {
  well: 60,
  resetOnHead: 1.5,
  resetAfterBody: 2,
  resetAfterHead: 2,
  closeOnBody: 1.5,
  status503: 3,
  status429: 2,
  status402: 1,
  status400: 2,
  redirect: 1,
  earlyRefusal: 1,
  stallBeforeHead: 0.6,
  stallAfterHead: 0.6,
  stallMidway: 0.6,
  html: 2,
  cutJson: 2,
  errorObject: 1.5,
  malformedChunk: 2,
  malformedHead: 1,
  drip: 2,
  huge: 1,
  gzip: 3,
  brokenGzip: 1.5,
  midFin: 3,
  midReset: 3,
  closeDelimited: 2,
  closeDelimitedReset: 1.5,
  closeAfter: 3,
  trailingBytes: 1,
  interim: 1.5,
  noType: 2,
  emptyStream: 1,
};

const WORDS = [
  'wind',
  'über',
  '東京',
  '🙂',
  'a<b',
  'x > y',
  '</think',
  '<thin',
  'k>',
  'line\nfeed',
  '"quoted"',
  '\\',
];

export function planAnswer(random, { upstream, stream }, plans = PLANS) {
  const kind = random.weighted(plans);
  const thought = random.chance(0.5) ? words(random, random.whole(1, 12)) : '';
  const told = words(random, kind === 'huge' ? 0 : random.whole(1, 40));
  const text = thought === '' ? told : `<think>${thought}</think>${told}`;
  // Some answers come in the form that was not asked for; the gateway joins the one and passes the other.
  const asStream = kind === 'emptyStream' || kind === 'huge' || (random.chance(0.06) ? !stream : stream);
  return {
    kind,
    text,
    asStream,
    upstream,
    hugeBytes: kind === 'huge' ? random.whole(1, 4) * 1024 * 1024 : 0,
  };
}

function words(random, count) {
  const list = [];
  for (let i = 0; i < count; i++) list.push(random.pick(WORDS));
  return list.join(' ');
}

/** The whole body of a good answer as bytes. `exchange` is written into it. */
export function bodyOf(random, plan, exchange) {
  if (plan.kind === 'emptyStream') return Buffer.alloc(0);
  return Buffer.from(plan.asStream ? streamText(random, plan, exchange) : jsonText(plan, exchange));
}

export function encodedBodyOf(random, plan, exchange) {
  return gzipSync(bodyOf(random, plan, exchange));
}

function jsonText({ text }, exchange) {
  return JSON.stringify({
    id: `x${exchange}`,
    object: 'chat.completion',
    created: 1,
    model: 'real',
    choices: [{ index: 0, message: { role: 'assistant', content: text }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 },
  });
}

function streamText(random, plan, exchange) {
  const eol = random.chance(0.2) ? '\r\n' : '\n';
  const event = (value) => `data: ${typeof value === 'string' ? value : JSON.stringify(value)}${eol}${eol}`;
  const chunk = (delta, finish = null) => ({
    id: `x${exchange}`,
    object: 'chat.completion.chunk',
    created: 1,
    model: 'real',
    choices: [{ index: 0, delta, finish_reason: finish }],
  });
  const parts = [event(chunk({ role: 'assistant', content: '' }))];
  // Array.from: a cut inside a surrogate pair would not survive JSON.
  for (const piece of random.cut(Array.from(plan.text), 30))
    parts.push(event(chunk({ content: piece.join('') })));
  if (random.chance(0.3)) parts.push(`: keep-alive${eol}${eol}`);
  if (plan.hugeBytes > 0) {
    const filler = event(chunk({ content: 'h'.repeat(900) }));
    plan.hugeEvents = Math.ceil(plan.hugeBytes / filler.length);
    for (let i = 0; i < plan.hugeEvents; i++) parts.push(filler);
  }
  parts.push(event(chunk({}, 'stop')));
  if (random.chance(0.5)) {
    const usage = { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 };
    parts.push(event({ ...chunk({}), choices: [], usage }));
  }
  parts.push(event('[DONE]'));
  return parts.join('');
}

/** What a client must read in a whole answer of this plan. */
export function expectedText(plan, splitsThoughts) {
  if (plan.kind === 'emptyStream') return { content: '', reasoning: '' };
  const filler = 'h'.repeat((plan.hugeEvents ?? 0) * 900);
  const match = splitsThoughts ? /^<think>(.*?)<\/think>(.*)$/s.exec(plan.text) : null;
  if (match === null) return { content: plan.text + filler, reasoning: '' };
  return { content: match[2] + filler, reasoning: match[1] };
}
