import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

/** An answer of the gateway itself, in OpenAI's error form. */
interface GatewayErrorOptions {
  /** 400 to 599. */
  readonly status: number;
  readonly code: string;
  readonly type: string;
  readonly message: string;
  readonly param?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

type GatewayErrorClass = new (options: GatewayErrorOptions) => Error;

/** The class by which the gateway knows a refusal; it lies beside the contracts and must be that very one. */
const contracts = pathToFileURL(createRequire(import.meta.url).resolve('llm-proxy/contracts'));
const errors = (await import(new URL('../common/errors/gateway-error.js', contracts).href)) as {
  GatewayError: GatewayErrorClass;
};

export const GatewayError = errors.GatewayError;
