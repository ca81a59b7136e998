import { GatewayError, type GatewayErrorBody, isErrorStatus } from '../common/errors/gateway-error.js';
import { PluginMistake } from '../common/errors/plugin-mistake.js';
import { MADE_BY_US } from '../common/http/header-syntax.js';
import { headerText } from './plugin-headers.js';

/** Of the answer itself, beside what describes the connection and the body. */
const OURS: ReadonlySet<string> = new Set([
  ...MADE_BY_US,
  'content-type',
  'date',
  'request-id',
  'x-request-id',
]);

/**
 * The refusal that a plugin threw, as a copy that can be sent: nothing of it can fail or change any more.
 * @throws PluginMistake where it is not what the contract says
 */
export function refusalOf(thrown: GatewayError): GatewayError {
  const status: unknown = thrown.status;
  if (!isErrorStatus(status))
    throw new PluginMistake(`its GatewayError has ${shownStatus(status)}, not 400…599`);
  const { message, type, code, param, ...extra } = writtenBody(thrown);
  for (const [name, text] of Object.entries({ message, type, code }))
    if (typeof text !== 'string') throw new PluginMistake(`the ${name} of its GatewayError is no text`);
  if (param !== null && typeof param !== 'string')
    throw new PluginMistake('the param of its GatewayError is no text');
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(thrown.headers)) headers[name] = headerText(name, value, OURS);
  return new GatewayError({
    status,
    code,
    type,
    message,
    ...(param === null ? {} : { param }),
    extra,
    headers,
  });
}

/** As the client will read it. */
function writtenBody(error: GatewayError): GatewayErrorBody['error'] {
  try {
    return (JSON.parse(JSON.stringify(error.body())) as GatewayErrorBody).error;
  } catch {
    // Trap: its reason may be a text of the plugin.
    throw new PluginMistake('the extra of its GatewayError cannot be written as JSON');
  }
}

function shownStatus(status: unknown): string {
  return typeof status === 'number' ? `the status ${status}` : 'a status that is no number';
}
