// Streams that break anywhere and are continued by another upstream: each character exactly once, in order.
import http from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { dataOf, parsed } from '../soak/verdict.mjs';
import { ask, jsonOf, listen } from './ask.mjs';

const CLIENTS = 6;
const BREAKS = { resetAndDestroy: 5, destroySoon: 4, errorEvent: 2, stall: 1 };
/** A break is never later than the gateway's `idle_timeout`. */
const STALL_MS = 5000;

/** No character twice in a text, so that each one that is missing or came twice is seen. */
function textOf(random) {
  const from = random.whole(0, 5000);
  return Array.from({ length: random.whole(20, 300) }, (_none, i) => {
    if (i % 7 === 3) return String.fromCodePoint(0x1f300 + i);
    if (i % 5 === 2) return String.fromCodePoint(0xc0 + i);
    return String.fromCodePoint(0x4e00 + from + i);
  });
}

function streamOf(random, characters) {
  const event = (value) => `data: ${typeof value === 'string' ? value : json(random, value)}\n\n`;
  const chunk = (delta, finish = null) => ({
    id: `c${random.whole(0, 1e6)}`,
    object: 'chat.completion.chunk',
    created: 1,
    model: 'real',
    choices: [{ index: 0, delta, finish_reason: finish }],
  });
  const parts = [event(chunk({ role: 'assistant', content: '' }))];
  for (const piece of random.cut(characters, 60)) parts.push(event(chunk({ content: piece.join('') })));
  return Buffer.from([...parts, event(chunk({}, 'stop')), event('[DONE]')].join(''));
}

/** As some providers write it: what is no ASCII as escapes. */
function json(random, value) {
  const text = JSON.stringify(value);
  if (random.chance(0.6)) return text;
  return text.replaceAll(/[^ -~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

export class Continuation {
  streams = 0;
  continued = 0;
  interrupted = 0;
  anew = 0;
  refused = 0;
  duplicate = 0;
  lost = 0;
  wrong = 0;
  untold = 0;
  breaks = {};
  found = [];
  #scenes = new Map();
  #server = http.createServer((request, response) => {
    this.#play(request, response).catch(() => response.destroy());
  });

  constructor(random) {
    this.random = random;
  }

  async listen() {
    return await listen(this.#server);
  }

  close() {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  async run(port, streams, tell) {
    // A connection for each: the gateway closes it behind an answer that was broken off.
    const agent = new http.Agent();
    const ticking = setInterval(() => tell(`continue: ${this.streams} of ${streams} streams`), 10_000);
    await Promise.all(
      Array.from({ length: CLIENTS }, async () => {
        while (this.streams < streams) await this.#one(agent, port, `scene ${this.streams++}`);
      }),
    );
    clearInterval(ticking);
    agent.destroy();
  }

  async #one(agent, port, name) {
    const scene = { text: textOf(this.random), asked: 0, went: false };
    this.#scenes.set(name, scene);
    const messages = [{ role: 'user', content: name }];
    const answer = await ask(agent, port, '/v1/chat/completions', {
      model: 'continued',
      stream: true,
      messages,
    });
    this.#judge(scene, answer, name);
    this.#scenes.delete(name);
  }

  #judge({ text, asked, went }, { status, text: body, whole }, name) {
    if (status === 503) {
      this.refused++;
      return;
    }
    const data = dataOf(body);
    const events = data.map(parsed);
    const error = events.some((event) => event?.error !== undefined);
    const done = data.at(-1) === '[DONE]';
    const got = Array.from(events.map((event) => event?.choices?.[0]?.delta?.content ?? '').join(''));
    if (error) this.interrupted++;
    else if (went) this.continued++;
    else this.anew++;
    if (!error && !(done && whole)) this.untold++;
    const seen = new Set(got);
    const upTo = error ? text.indexOf(got.at(-1)) + 1 : text.length;
    const duplicate = got.length - seen.size;
    const lost = text.slice(0, upTo).filter((character) => !seen.has(character)).length;
    const right = text.slice(0, got.length).join('') === got.join('');
    this.duplicate += duplicate;
    this.lost += lost;
    if (!right && duplicate + lost === 0) this.wrong++;
    if (status !== 200 || !right || lost > 0 || (!error && !done))
      this.found.push(
        `${name}: status ${status}, asked ${asked} times, error ${error}, done ${done}, got ${got.length} of ${text.length}, twice ${duplicate}, lost ${lost}`,
      );
  }

  async #play(request, response) {
    const { messages } = await jsonOf(request);
    const scene = this.#scenes.get(messages[0].content);
    const attempt = scene.asked++;
    const given = messages.at(-1).role === 'assistant' ? Array.from(messages.at(-1).content) : [];
    if (given.length > 0) scene.went = true;
    if (scene.text.slice(0, given.length).join('') !== given.join('')) {
      this.wrong++;
      this.found.push('the next upstream was given what is not the beginning of the text');
    }
    // Some send what they were given once more.
    const echo = given.length > 0 && this.random.chance(0.2);
    const bytes = streamOf(this.random, echo ? scene.text : scene.text.slice(given.length));
    const breaks = attempt === 0 || this.random.chance(0.15);
    const how = breaks ? this.random.weighted(BREAKS) : null;
    let part = breaks ? bytes.subarray(0, this.random.whole(0, bytes.length - 1)) : bytes;
    // An error event follows whole events; the other breaks come in the middle of one too.
    if (how === 'errorEvent')
      part = part.subarray(0, part.includes('\n\n') ? part.lastIndexOf('\n\n') + 2 : 0);
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    for (const piece of this.random.cut(part, 12)) {
      if (piece.length === 0) continue;
      await new Promise((resolve) => response.write(piece, resolve));
      if (this.random.chance(0.2)) await sleep(this.random.whole(0, 4));
    }
    if (how !== null) await this.#break(response, how);
    else response.end();
  }

  async #break(response, how) {
    this.breaks[how] = (this.breaks[how] ?? 0) + 1;
    if (how === 'errorEvent') response.end('data: {"error":{"message":"gone","code":"x"}}\n\n');
    else if (how !== 'stall') response.socket?.[how]();
    else {
      const closed = new Promise((resolve) => response.once('close', resolve));
      await Promise.race([closed, sleep(STALL_MS, undefined, { ref: false })]);
      response.destroy();
    }
  }
}
