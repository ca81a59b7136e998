import type { IncomingHttpHeaders } from 'node:http';
import type { JsonDocument } from '../common/json/json-document.js';
import type { ModelForm } from '../common/multipart/model-form.js';
import type { ModelConfig, UpstreamConfig } from '../config/gateway-config.js';
import type { RouteConfig } from '../config/access-config.js';
import type { Caller } from '../consumers/caller.js';
import type { RejectionReason } from '../observability/metrics/rejection-reason.js';
import type { Sight } from '../routing/sight.js';
import type { Operation, OperationName } from '../contracts/operation.js';
import type { AttemptRecord, Exchange } from '../contracts/exchange.js';
import type { Spending } from '../quotas/spending.js';
import type { Attachment } from './attachment.js';
import type { RelayedAnswer } from './continuation/relayed-answer.js';
import type { Waiter } from '../upstreams/concurrency/waiter.js';

import type { TooLong } from './too-long.js';

const NO_ATTEMPTS: readonly AttemptRecord[] = Object.freeze([]);

/** Why an exchange is given up from outside. */
export type GivenUp = 'client_gone' | 'shutting_down' | 'slot_lost';

export interface ExchangeInput {
  readonly id: string;
  readonly headers: Readonly<IncomingHttpHeaders>;
  /** End-to-end headers of the client as a flat list; they go to every attempt. */
  readonly passedHeaders: readonly string[];
  readonly contentType: string;
  readonly query: string;
  /** Of a form only what it says of the model. */
  readonly body: JsonDocument;
  readonly form: ModelForm | null;
  readonly operation: Operation;
  readonly startedAt: number;
  /** Who asks; null where the service is open. */
  readonly caller: Caller | null;
  /** Nothing is sent: an administrator wants to know what would be. */
  readonly explains?: boolean;
  /** Null of a probe. */
  readonly route: RouteConfig | null;
}

/** The engine's side of an {@link Exchange}: what changes while it runs. Made by the HTTP layer, finished by the gateway. */
export class GatewayExchange implements Exchange {
  /** What was tried so far; the gateway's own list. */
  readonly records: AttemptRecord[] = [];
  /** What it spends of its consumer's quotas; null where there are none. */
  spending: Spending | null = null;
  /** Its place among the running exchanges; theirs to set. */
  place = -1;
  /** What the client called the model. */
  requestedModel = '';
  /** What of the models the caller sees; null = all of it. */
  sight: Sight | null = null;
  /** A place of the consumer is taken, to be given back at the end. */
  holdsPlace = false;
  /** Why it was refused by an answer of ours; null where it was not, or not counted. */
  rejection: RejectionReason | null = null;
  /** Monotonic; Infinity = no deadline. No attempt begins after it, and none goes on. */
  deadlineAt = Infinity;
  /** Set by the first answer that found the prompt too long. */
  tooLong: TooLong | null = null;
  /** What ties it to who served its conversation before; null where the model has no affinity. */
  attachment: Attachment | null = null;
  /** Id of the key that was issued what it names, at the only candidate it has; null = any. */
  issuingKey: string | null = null;
  /** It names what a provider issued: a response, a file, a container. */
  namesIssued = false;
  /** What the client has of a stream that another upstream may go on with; null = a break is final. */
  relayed: RelayedAnswer | null = null;
  /** What it waited for a slot, and the place it has; null where it never had to, or could not. */
  waiter: Waiter | null = null;
  #model: ModelConfig | null = null;
  #attempts: readonly AttemptRecord[] = NO_ATTEMPTS;
  #notes: Map<symbol, unknown> | null = null;
  #controller: AbortController | null = null;
  #givenUp: GivenUp | null = null;
  #onGivenUp: ((why: GivenUp) => void) | null = null;

  constructor(readonly input: ExchangeInput) {}

  get id(): string {
    return this.input.id;
  }

  get headers(): Readonly<IncomingHttpHeaders> {
    return this.input.headers;
  }

  get consumer(): Caller | null {
    return this.input.caller;
  }

  get operation(): OperationName {
    return this.input.operation.name;
  }

  get route(): string {
    return this.input.route?.id ?? '';
  }

  /**
   * Whether a provider that does not know something of this request may mean anything but the model: what was issued, what
   * the client wrote behind the path, or a path that not each server of this kind has.
   */
  namesMore({ serves }: UpstreamConfig): boolean {
    const { capability, generates } = this.input.operation;
    if (this.namesIssued || this.query !== '' || !generates) return true;
    return capability !== 'chat' && serves.includes('chat');
  }

  get query(): string {
    return this.input.query;
  }

  get body(): JsonDocument {
    return this.input.body;
  }

  /** Whether later requests of this consumer depend on what is learned from the answer. */
  get learnsIds(): boolean {
    return this.consumer !== null && this.input.operation.name === 'responses';
  }

  get model(): ModelConfig {
    if (this.#model === null) throw new Error('the model of an exchange was asked for before it was known');
    return this.#model;
  }

  set model(model: ModelConfig) {
    this.#model = model;
  }

  get modelName(): string {
    return this.#model?.name ?? '';
  }

  /** Whether it is known who is asked for; one addressed directly has no name. */
  get routed(): boolean {
    return this.#model !== null;
  }

  /** Trap: errors, headers and the log are made of the records. So plugins see a frozen copy, made when one asks. */
  get attempts(): readonly AttemptRecord[] {
    if (this.#attempts.length !== this.records.length)
      this.#attempts = Object.freeze(this.records.map((record) => Object.freeze(record)));
    return this.#attempts;
  }

  get notes(): Map<symbol, unknown> {
    this.#notes ??= new Map();
    return this.#notes;
  }

  /** Made when somebody asks: most exchanges never need one. */
  get signal(): AbortSignal {
    if (this.#controller === null) {
      this.#controller = new AbortController();
      if (this.#givenUp !== null) this.#controller.abort();
    }
    return this.#controller.signal;
  }

  get givenUp(): GivenUp | null {
    return this.#givenUp;
  }

  /** Who wants to know at once; one at a time, the attempt that runs. */
  set onGivenUp(listener: ((why: GivenUp) => void) | null) {
    this.#onGivenUp = listener;
  }

  /** Nobody waits for it any more: what a plugin still does for it may end, and can know by the signal. */
  abandon(): void {
    void this.signal;
    this.#controller?.abort();
  }

  /** The client left, or the service ends. Only the first reason counts. */
  giveUp(why: GivenUp): void {
    if (this.#givenUp !== null) return;
    this.#givenUp = why;
    this.#controller?.abort();
    this.#onGivenUp?.(why);
  }
}
