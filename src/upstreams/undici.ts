// Trap: the package's entry also loads fetch, WebSocket and mocks, which the start would pay for (docs/performance.md).
import buildConnector from 'undici/lib/core/connect.js';
import errors from 'undici/lib/core/errors.js';
import Client from 'undici/lib/dispatcher/client.js';

/** The parts of undici that this service uses, without the rest of it. */
export { buildConnector, Client, errors };
