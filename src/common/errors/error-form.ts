import type { GatewayError } from './gateway-error.js';

/**
 * In whose form an error is told. `openai` is also the form of chat completions within a stream; `responses` differs from
 * it only there.
 */
export type ErrorForm = 'openai' | 'responses' | 'anthropic';

/** Anthropic's types of errors, by status (their API reference, "Errors"). */
const ANTHROPIC_TYPES: ReadonlyMap<number, string> = new Map([
  [401, 'authentication_error'],
  [403, 'permission_error'],
  [404, 'not_found_error'],
  [413, 'request_too_large'],
  [429, 'rate_limit_error'],
  [503, 'overloaded_error'],
]);

export function anthropicType(status: number): string {
  return ANTHROPIC_TYPES.get(status) ?? (status >= 500 ? 'api_error' : 'invalid_request_error');
}

/** The body of an answer of our own. */
export function errorBody(error: GatewayError, form: ErrorForm, requestId: string): object {
  const body = error.body();
  if (form !== 'anthropic') return body;
  const { type: _, ...rest } = body.error;
  return { type: 'error', error: { type: anthropicType(error.status), ...rest }, request_id: requestId };
}

/** The same as it is sent. */
export function errorBytes(error: GatewayError, form: ErrorForm, requestId: string): Buffer {
  return Buffer.from(JSON.stringify(errorBody(error, form, requestId)));
}

/** Who or what ended a stream before its time. */
export type BreakCause =
  'upstream' | 'timed_out' | 'client_gone' | 'shutting_down' | 'slot_lost' | 'own_error';

const CAUSES: Readonly<Record<BreakCause, string>> = {
  upstream: 'The upstream broke off in the middle of this answer',
  timed_out: 'The time limit was reached in the middle of this answer',
  client_gone: 'The client closed its side of the connection in the middle of this answer',
  shutting_down: 'The gateway is shutting down and ended this answer',
  slot_lost: 'The gateway had to give up its place at the upstream in the middle of this answer',
  own_error: 'An error of the gateway ended this answer',
};
/** One code for all of them: it says what the client has, not whose fault it is. */
const CODE = 'upstream_stream_interrupted';

/** The one event that says in band that a stream broke. */
export function interruptionEvent(
  form: ErrorForm,
  requestId: string,
  nextSequence: number,
  cause: BreakCause = 'upstream',
): Buffer {
  const message = `${CAUSES[cause]}; what came is incomplete.`;
  switch (form) {
    case 'openai':
      return event(null, { error: { message, type: 'upstream_error', param: null, code: CODE } });
    case 'responses':
      return event('error', {
        type: 'error',
        code: CODE,
        message,
        param: null,
        sequence_number: nextSequence,
      });
    case 'anthropic':
      return event('error', {
        type: 'error',
        error: { type: 'api_error', message, param: null, code: CODE },
        request_id: requestId,
      });
  }
}

/** Of a stream of chat completions. */
export function streamInterrupted(cause: BreakCause): Buffer {
  return interruptionEvent('openai', '', 0, cause);
}

function event(name: string | null, data: object): Buffer {
  return Buffer.from(`${name === null ? '' : `event: ${name}\n`}data: ${JSON.stringify(data)}\n\n`);
}
