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
  readonly status: number;
  readonly code: string;
  readonly type: string;
  readonly message: string;
  readonly param?: string;
  /** Further members of `error`, such as `attempts`. */
  readonly extra?: Readonly<Record<string, unknown>>;
  /** Names in lower case. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** A fixed key, so that an error made by another copy of this package is still known as one. */
const BRAND = Symbol.for('llm-proxy:gateway-error');

/**
 * Everything the proxy answers by itself that is no success. Ours are made by the functions of the catalogue only;
 * a plugin throws its own to refuse a request: `message` is shown to the client, `status` is 400…599.
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
