import type { ErrorForm } from '../common/errors/error-form.js';
import type { Capability, Protocol } from '../config/access-config.js';

/** What a client can ask of a model; each has a path of its own below a route. */
export type OperationName =
  | 'chat'
  | 'responses'
  | 'messages'
  | 'count_tokens'
  | 'embeddings'
  | 'completions'
  | 'images'
  | 'rerank'
  | 'speech'
  | 'transcription'
  | 'translation';

export interface Operation {
  readonly name: OperationName;
  /** Below a route, and below the base url of a provider. */
  readonly path: string;
  /** How the body of the request is written; of a form only the field `model` is understood. */
  readonly body: 'json' | 'form';
  /** The protocol that an upstream must speak; null = it must have the capability, and speak anything that is spoken here. */
  readonly protocol: Protocol | null;
  readonly capability: Capability;
  /** False = it only asks about a request: no tokens are used, and none are counted where the provider names none. */
  readonly generates: boolean;
  /** In whose form errors are told, before the answer and within a stream. */
  readonly form: ErrorForm;
}

const define = (
  name: OperationName,
  path: string,
  capability: Capability,
  protocol: Protocol | null = null,
  more: Partial<Operation> = {},
): Operation => ({
  name,
  path,
  body: 'json',
  protocol,
  capability,
  generates: true,
  form: 'openai',
  ...more,
});

export const OPERATIONS: readonly Operation[] = [
  define('chat', '/chat/completions', 'chat', 'chat-completions'),
  define('responses', '/responses', 'chat', 'responses', { form: 'responses' }),
  define('messages', '/messages', 'chat', 'messages', { form: 'anthropic' }),
  define('count_tokens', '/messages/count_tokens', 'chat', 'messages', {
    generates: false,
    form: 'anthropic',
  }),
  define('embeddings', '/embeddings', 'embeddings'),
  define('completions', '/completions', 'completions'),
  define('images', '/images/generations', 'images'),
  define('rerank', '/rerank', 'rerank'),
  define('speech', '/audio/speech', 'audio'),
  define('transcription', '/audio/transcriptions', 'audio', null, { body: 'form' }),
  define('translation', '/audio/translations', 'audio', null, { body: 'form' }),
];

const BY_NAME: ReadonlyMap<OperationName, Operation> = new Map(
  OPERATIONS.map((operation) => [operation.name, operation]),
);

export function operationOf(name: OperationName): Operation {
  return BY_NAME.get(name) as Operation;
}

/** Requests for a chat completion: what probes are, and what most stages are made for. */
export const CHAT: Operation = operationOf('chat');
