import { createRequire } from 'node:module';
import type * as Undici from 'undici';

// Trap: the package's entry also loads fetch, WebSocket and mocks, which the start would pay for (docs/performance.md).
const require = createRequire(import.meta.url);

/** The parts of undici that this service uses, without the rest of it. */
export const Client = require('undici/lib/dispatcher/client.js') as typeof Undici.Client;
export type Client = Undici.Client;
export const buildConnector = require('undici/lib/core/connect.js') as typeof Undici.buildConnector;
export const errors = require('undici/lib/core/errors.js') as typeof Undici.errors;
