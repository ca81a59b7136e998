// What a client got, held against what the provider did: no half answer may look whole, no text may change.
import { gunzipSync } from 'node:zlib';
import { expectedText } from './answer-plan.mjs';

/** Upstreams whose thoughts are split off. */
const SPLITTING = new Set(['think', 'zip']);
const ERROR_CODE = 'upstream_stream_interrupted';
const KEPT = 40;

export class Verdict {
  violations = [];
  counts = { whole: 0, interrupted: 0, cut: 0, refused: 0, passed4xx: 0, left: 0 };
  statuses = {};
  /** Streams that were cut, or whose half looked whole, without the error event. */
  untold = 0;

  constructor(provider) {
    this.provider = provider;
  }

  /** Gives `whole` for an answer after which the connection goes on. */
  check(answer, wish) {
    if (wish.late) this.#violation('no end of an answer within 30 s', answer, wish);
    else if (answer.ending === 'left') this.counts.left++;
    else if (answer.status === 0) this.#violation(`no answer at all (${answer.ending})`, answer, wish);
    else {
      this.statuses[answer.status] = (this.statuses[answer.status] ?? 0) + 1;
      const exchange = this.provider.exchanges.get(Number(answer.headers.get('x-soak-exchange') ?? -1));
      if (answer.status === 200) return this.#success(answer, wish, exchange);
      this.#refusal(answer, wish, exchange);
      return 'whole';
    }
  }

  #refusal(answer, wish, exchange) {
    if (exchange === undefined) this.counts.refused++;
    else this.counts.passed4xx++;
    if (answer.ending !== 'complete') return this.#violation('a refusal that is cut', answer, wish);
    let error;
    try {
      ({ error } = JSON.parse(answer.body.toString()));
    } catch {
      return this.#violation('a refusal that is no JSON', answer, wish);
    }
    const known = wish.mistaken ? [400, 404] : [400, 503];
    if (!known.includes(answer.status)) return this.#violation(`an unexpected status`, answer, wish);
    const wellFormed = ['message', 'type', 'code'].every((name) => typeof error?.[name] === 'string');
    if (!wellFormed || error.param === undefined)
      this.#violation('a refusal not in the form of OpenAI', answer, wish);
  }

  #success(answer, wish, exchange) {
    if (wish.mistaken || exchange === undefined)
      return this.#violation('a success out of nothing', answer, wish);
    const coded = answer.headers.get('content-encoding') === 'gzip';
    if (answer.ending !== 'complete') return this.#unfinished(answer, wish, exchange, coded);
    const text = coded ? unzipped(answer.body) : answer.body.toString();
    // Coded and read by nobody: it passes as it came, broken or not.
    if (text === null && exchange.plan.kind === 'brokenGzip') return 'whole';
    if (text === null) return this.#violation('a coded answer that cannot be read', answer, wish, exchange);
    const read = contentOf(text, answer);
    if (read.interrupted) {
      this.counts.interrupted++;
      if (read.doneAfter) this.#violation('[DONE] in an interrupted answer', answer, wish, exchange);
      return;
    }
    if (!exchange.truthful && wish.stream) this.untold++;
    if (!exchange.truthful) return this.#violation('half an answer that looks whole', answer, wish, exchange);
    this.counts.whole++;
    const expected = expectedText(exchange.plan, SPLITTING.has(exchange.upstream));
    const same = read.content === expected.content && read.reasoning === expected.reasoning;
    if (!same) {
      const difference = ` expected ${JSON.stringify(expected)} came ${JSON.stringify([read.content, read.reasoning])}`;
      this.#violation(`a text that changed on its way:${difference.slice(0, 3000)}`, answer, wish, exchange);
    }
    if (/<\/?think>/.test(read.content) && SPLITTING.has(exchange.upstream)) {
      this.#violation('a think tag in the text', answer, wish, exchange);
    }
    return 'whole';
  }

  /** The framing says that the answer is not whole: right for what cannot say it in band, else the event is missing. */
  #unfinished(answer, wish, exchange, coded) {
    this.counts.cut++;
    const sse = (answer.headers.get('content-type') ?? '').startsWith('text/event-stream');
    if (!sse || coded) return;
    const { interrupted, doneAfter } = contentOf(answer.body.toString(), answer);
    if (!interrupted) this.untold++;
    if (!interrupted) this.#violation(`a stream cut without the error event`, answer, wish, exchange);
    else if (doneAfter) this.#violation('[DONE] in an interrupted answer', answer, wish, exchange);
  }

  #violation(what, answer, wish, exchange) {
    if (this.violations.length >= KEPT) return;
    const plan =
      exchange === undefined
        ? ''
        : ` plan=${exchange.plan.kind} upstream=${exchange.upstream} end=${exchange.end}`;
    const asked = wish.mistaken
      ? 'mistaken'
      : `${wish.id} ${wish.behaviour} model=${wish.model} stream=${wish.stream}`;
    const tail = answer.body
      .subarray(-160)
      .toString('latin1')
      .replaceAll(/[^ -~]/g, '.');
    this.violations.push(
      `${what}: ${asked} status=${answer.status} ending=${answer.ending}${plan} tail="${tail}"`,
    );
  }
}

function unzipped(body) {
  try {
    return gunzipSync(body).toString();
  } catch {
    return null;
  }
}

function contentOf(text, answer) {
  const sse = (answer.headers.get('content-type') ?? '').startsWith('text/event-stream');
  const read = { content: '', reasoning: '', interrupted: false, doneAfter: false };
  const contents = [];
  const reasonings = [];
  const take = (part) => {
    if (typeof part?.content === 'string') contents.push(part.content);
    if (typeof part?.reasoning_content === 'string') reasonings.push(part.reasoning_content);
  };
  if (!sse) take(parsed(text)?.choices?.[0]?.message);
  else {
    for (const data of dataOf(text)) {
      // What the upstream itself had said before it broke is its own; ours would come behind the error event.
      if (data === '[DONE]') read.doneAfter = read.interrupted;
      const json = parsed(data);
      if (json?.error?.code === ERROR_CODE) read.interrupted = true;
      take(json?.choices?.[0]?.delta);
    }
  }
  read.content = contents.join('');
  read.reasoning = reasonings.join('');
  return read;
}

/** The data of each event, by lines as the WHATWG cuts them; a last event without its blank line counts for nothing. */
export function dataOf(text) {
  const events = [];
  let data = [];
  for (const line of text.split(/\r\n|\n|\r/)) {
    if (line.startsWith('data:')) data.push(line.slice(line[5] === ' ' ? 6 : 5));
    else if (line === '' && data.length > 0) {
      events.push(data.join('\n'));
      data = [];
    }
  }
  return events;
}

export function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
