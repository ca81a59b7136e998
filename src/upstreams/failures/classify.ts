import { ERROR_CLASSES, type ErrorClass, type FailedAnswer } from '../../contracts/error-class.js';
import { errorFacts, type ErrorFacts } from './error-facts.js';
import { ownWords } from './own-words.js';
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
/** Classes by whose words something rests for every client. */
const RESTING: ReadonlySet<ErrorClass> = new Set(['quota_exhausted', 'model_gone']);
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
    if (known !== undefined) return known;
  }
  const inside = status < 400;
  const meant = inside ? facts.statusCode : status;
  if (meant === undefined) {
    const named = byVagueCode(facts) ?? byCanonicalStatus(facts.canonicalStatus);
    return named ?? (facts.identifiers.includes('invalid_request_error') ? 'bad_request' : 'server_error');
  }
  const said = byMessage(facts.message, meant);
  if (said !== undefined) return said;
  // A page, which no API sends: something before it refused what the request holds. It is not about the key.
  if (meant === 403 && text.trimStart().startsWith('<')) return 'busy';
  const name = byVagueCode(facts) ?? classOfStatus(meant);
  if (name === 'model_gone' && namesMore === true && !NAMES_MODEL.test(facts.message)) return 'bad_request';
  return name;
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
  const own = ownWords(message, status);
  for (const [name, { messages }] of VOCABULARY) {
    // What broke at the provider is not the client's, whatever is said of it.
    if (name === 'bad_request' && status >= 500) continue;
    const words = RESTING.has(name) ? own : message;
    const holds = messages?.some((phrase) =>
      typeof phrase === 'string' ? words.includes(phrase) : phrase.test(words),
    );
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
