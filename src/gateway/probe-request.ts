import type { UpstreamConfig } from '../config/gateway-config.js';
import { type Operation, operationOf } from '../contracts/operation.js';

/** The smallest request that makes an upstream answer, in one protocol. */
export interface ProbeRequest {
  readonly operation: Operation;
  readonly body: Buffer;
}

const QUESTION = '2+2=?';
const MESSAGES = [{ role: 'user', content: QUESTION }];

const request = (operation: Operation, body: object): ProbeRequest => ({
  operation,
  body: Buffer.from(JSON.stringify({ model: '', ...body, stream: true })),
});

const CHAT = request(operationOf('chat'), { messages: MESSAGES, max_tokens: 4 });
const ANTHROPIC = request(operationOf('messages'), { messages: MESSAGES, max_tokens: 4 });
/** Fewer than 16 tokens are refused by the API that this protocol comes from. */
const RESPONSES = request(operationOf('responses'), { input: QUESTION, max_output_tokens: 16 });

/** By the first protocol of an upstream that has one of ours; null where it is not to be probed. */
export function probeRequest({ protocols, serves }: UpstreamConfig): ProbeRequest | null {
  if (!serves.includes('chat')) return null;
  for (const protocol of protocols) {
    if (protocol === 'chat-completions') return CHAT;
    if (protocol === 'messages') return ANTHROPIC;
    if (protocol === 'responses') return RESPONSES;
  }
  return null;
}
