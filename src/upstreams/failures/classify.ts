import { ERROR_CLASSES, type ErrorClass, type FailedAnswer } from '../../contracts/error-class.js';
import { errorFacts, type ErrorFacts } from './error-facts.js';
import { asOwnWords, mayRepeatClient, withoutLabels } from './own-words.js';
import { ERROR_VOCABULARY, type ErrorWords } from './error-vocabulary.js';

export interface Classification {
  readonly class: ErrorClass;
  /** What the body itself asks for; the headers count first. */
  readonly retryDelayMs?: number;
  /** The HTTP status that the error names itself. */
  readonly statusCode?: number;
}

const VOCABULARY = Object.entries(ERROR_VOCABULARY) as [ErrorClass, ErrorWords][];
const BY_CODE = new Map(VOCABULARY.flatMap(([name, { codes }]) => (codes ?? []).map((code) => [code, name])));
const BY_VAGUE_CODE = new Map(
  VOCABULARY.flatMap(([name, { vagueCodes }]) => (vagueCodes ?? []).map((code) => [code, name])),
);
/** Of the classes by whose words something rests for every client. */
const OWN_WORDS: ReadonlyMap<ErrorClass, readonly RegExp[]> = new Map(
  (['quota_exhausted', 'unauthorized', 'model_gone'] as const).map((name) => [
    name,
    (ERROR_VOCABULARY[name].messages ?? []).map(asOwnWords),
  ]),
);
const BAD_REQUEST = 400;
/** What firewalls and their services send, which no API does. */
const PAGE = /^\s*(?:<|error code: 1\d{3}\s*$)/i;
const ASIDE = /^(?:tools|tool_choice|input|messages|prompt)\b/;
const NAMES_MODEL = /\b(?:model|deployment|engine)/;
const BY_STATUS = new Map(
  VOCABULARY.flatMap(([name, { statuses }]) => (statuses ?? []).map((status) => [status, name])),
);

/** What is known of an answer, and of what was asked. */
export type Unclassified = Pick<FailedAnswer, 'status' | 'json' | 'text' | 'header'> & {
  /** The request named more than a model that the provider may not know: a 404 has to say that it means the model. */
  readonly namesMore?: boolean;
};

/**
 * The class of a failed answer: by code, then type, then message, then status. Of an error object inside a 2xx only what
 * it calls itself counts; where that says nothing, it is the provider's fault.
 */
export function classify(answer: Unclassified): Classification {
  const facts = errorFacts(answer);
  const name = classOf(answer, facts);
  const { retryDelayMs, statusCode } = facts;
  return {
    class: name,
    ...(retryDelayMs === undefined ? {} : { retryDelayMs }),
    ...(statusCode === undefined ? {} : { statusCode }),
  };
}

export function isErrorClass(value: unknown): value is ErrorClass {
  return ERROR_CLASSES.includes(value as ErrorClass);
}

/** The class of a status alone, for answers nobody reads. */
export function classOfStatus(status: number): ErrorClass {
  const known = BY_STATUS.get(status);
  if (known !== undefined) return known;
  return status >= 400 && status <= 499 ? 'bad_request' : 'server_error';
}

function classOf({ status, text, namesMore }: Unclassified, facts: ErrorFacts): ErrorClass {
  for (const identifier of facts.identifiers) {
    const known = byIdentifier(identifier);
    // A model beside the one that was asked for: a tool's, say.
    if (known === 'model_gone' && ASIDE.test(facts.param)) return 'bad_request';
    if (known !== undefined) return known;
  }
  const inside = status < 400;
  const meant = inside ? facts.statusCode : status;
  if (meant === undefined) {
    const named = byVagueCode(facts) ?? byCanonicalStatus(facts.canonicalStatus);
    if (named !== undefined) return named;
    if (!facts.identifiers.includes('invalid_request_error')) return 'server_error';
    return byMessage(facts.message, BAD_REQUEST) ?? 'bad_request';
  }
  const said = byMessage(facts.message, meant);
  if (said !== undefined) return said;
  // Something before the API refused what the request holds. It is not about the key.
  if (meant === 403 && PAGE.test(text)) return 'busy';
  const name = byVagueCode(facts) ?? classOfStatus(meant);
  if (namesMore !== true) return name;
  if (name === 'model_gone' && !NAMES_MODEL.test(facts.message)) return 'bad_request';
  // What stands behind a `?` may be a key, and the wrong one.
  return name === 'unauthorized' ? 'busy' : name;
}

function byVagueCode({ identifiers }: ErrorFacts): ErrorClass | undefined {
  for (const identifier of identifiers) {
    const known = BY_VAGUE_CODE.get(identifier);
    if (known !== undefined) return known;
  }
  return undefined;
}

function byIdentifier(identifier: string): ErrorClass | undefined {
  const exact = BY_CODE.get(identifier);
  if (exact !== undefined) return exact;
  for (const [name, { codePrefixes }] of VOCABULARY) {
    if (codePrefixes?.some((prefix) => identifier.startsWith(prefix))) return name;
  }
  return undefined;
}

function byMessage(message: string, status: number): ErrorClass | undefined {
  if (message === '') return undefined;
  const own = mayRepeatClient(status) ? withoutLabels(message) : null;
  for (const [name, { messages }] of VOCABULARY) {
    // What broke at the provider is not the client's, whatever is said of it.
    if (name === 'bad_request' && status >= 500) continue;
    const strict = own === null ? undefined : OWN_WORDS.get(name);
    const holds =
      strict === undefined
        ? messages?.some((phrase) =>
            typeof phrase === 'string' ? message.includes(phrase) : phrase.test(message),
          )
        : strict.some((phrase) => phrase.test(own as string));
    if (holds === true) return name;
  }
  return undefined;
}

/** Google's words for a status, in an error without a numeric code. */
function byCanonicalStatus(status: string | undefined): ErrorClass | undefined {
  if (status === 'resource_exhausted') return 'rate_limited';
  if (status === 'not_found') return 'model_gone';
  if (status === 'invalid_argument') return 'bad_request';
  return status === undefined ? undefined : (byIdentifier(status) ?? BY_VAGUE_CODE.get(status));
}
