/** An answer of the proxy itself, in OpenAI's error form. Its texts are ours or the client's own words, escaped. */
export interface GatewayErrorBody {
  readonly error: {
    readonly message: string;
    readonly type: string;
    readonly param: string | null;
    readonly code: string;
    readonly [extra: string]: unknown;
  };
}

export interface GatewayErrorOptions {
  /** 400…599. */
  readonly status: number;
  readonly code: string;
  readonly type: string;
  readonly message: string;
  readonly param?: string;
  /** Further members of `error`, such as `attempts`: what JSON can hold. */
  readonly extra?: Readonly<Record<string, unknown>>;
  /** Names in lower case; texts that HTTP can carry. None that the service makes itself, such as `content-type`. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** What an answer that is no success can have for a status. */
export function isErrorStatus(status: unknown): status is number {
  return Number.isInteger(status) && (status as number) >= 400 && (status as number) <= 599;
}

/** A fixed key, so that an error made by another copy of this package is still known as one. */
const BRAND = Symbol.for('llm-proxy:gateway-error');

/**
 * Everything the proxy answers by itself that is no success. Ours are made by the functions of the catalogue only;
 * a plugin throws its own to refuse a request: `message` is shown to the client. One that is not as
 * {@link GatewayErrorOptions} says counts as a plugin that failed.
 */
export class GatewayError extends Error {
  readonly [BRAND] = true;
  readonly status: number;
  readonly code: string;
  readonly type: string;
  readonly param: string | null;
  readonly headers: Readonly<Record<string, string>>;
  readonly #extra: Readonly<Record<string, unknown>>;

  constructor(options: GatewayErrorOptions) {
    super(options.message);
    this.name = 'GatewayError';
    this.status = options.status;
    this.code = options.code;
    this.type = options.type;
    this.param = options.param ?? null;
    this.headers = options.headers ?? {};
    this.#extra = options.extra ?? {};
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    return typeof value === 'object' && value !== null && BRAND in value;
  }

  body(): GatewayErrorBody {
    return {
      error: { message: this.message, type: this.type, param: this.param, code: this.code, ...this.#extra },
    };
  }
}
