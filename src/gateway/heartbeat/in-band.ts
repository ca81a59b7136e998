import { upstreamRefused } from '../../common/errors/catalogue.js';
import type { GatewayError } from '../../common/errors/gateway-error.js';
import { JsonDocument } from '../../common/json/json-document.js';

const DONE = Buffer.from('data: [DONE]\n\n');
const END_OF_EVENT = Buffer.from('\n\n');
const DATA = Buffer.from('data: ');
const LF = 10;
const CR = 13;
const SPACE = 32;

/** An error of ours where the head of a stream is gone already: one event with the status it would have had. */
export function errorEvent(error: GatewayError): Buffer {
  return eventOf({ error: { ...error.body().error, status: error.status } });
}

/** A provider's refusal (4xx) as such an event: its own words, as far as they can be found. */
export function refusalEvent(status: number, body: readonly Buffer[]): Buffer {
  const ours = upstreamRefused(status).body().error;
  const told = JsonDocument.tryParse(body);
  const error = told?.get('error') ?? told?.get('message') ?? told?.get('detail');
  if (typeof error === 'string') return eventOf({ error: { ...ours, message: error, status } });
  return eventOf({ error: { ...(isObject(error) ? error : ours), status } });
}

/** A whole JSON answer as the one chunk of a stream, and its end. What no rule touches keeps its bytes. */
export function chunkEvents(body: readonly Buffer[]): readonly Buffer[] {
  const answer = JsonDocument.tryParse(body);
  if (answer === undefined) return body.length === 0 ? [DONE] : [...dataOf(body), DONE];
  if (answer.string('object') === 'chat.completion') answer.set('object', 'chat.completion.chunk');
  const choices = answer.array('choices');
  for (let i = 0; i < (choices?.length ?? 0); i++) {
    const choice = choices?.object(i);
    if (choice !== undefined) toDelta(choice);
  }
  return [...dataOf(answer.parts()), DONE];
}

function toDelta(choice: JsonDocument): void {
  const calls = choice.object('message')?.array('tool_calls');
  for (let i = 0; i < (calls?.length ?? 0); i++) {
    const call = calls?.object(i);
    if (call !== undefined && !call.has('index')) call.set('index', i);
  }
  const message = choice.raw('message');
  if (message === undefined) return;
  choice.setRaw('delta', message);
  choice.delete('message');
}

/** JSON holds line ends between its tokens only: a space does as well, and keeps it on one line. */
function dataOf(body: readonly Buffer[]): readonly Buffer[] {
  const lines = body.map((part) => {
    if (!part.includes(LF) && !part.includes(CR)) return part;
    return Buffer.from(part.map((byte) => (byte === LF || byte === CR ? SPACE : byte)));
  });
  return [DATA, ...lines, END_OF_EVENT];
}

function eventOf(value: object): Buffer {
  return Buffer.from(`data: ${JSON.stringify(value)}\n\n`);
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
