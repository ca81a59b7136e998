import { answerWell, type ScriptedUpstream } from './scripted-upstream.js';
import type { Stage } from './stage.js';
import { waitFor } from './wait-for.js';

/** A provider that keeps every request until it is told to answer, and the order in which they came. */
export interface HeldAnswers {
  /** What the requests say last, in the order of their arrival. */
  readonly order: readonly string[];
  /** Answers the oldest one that is held, once there is one. */
  next(): Promise<void>;
  /** Answers all, now and later. */
  release(): void;
}

export function holdAnswers(upstream: ScriptedUpstream): HeldAnswers {
  const order: string[] = [];
  const held: (() => void)[] = [];
  let free = false;
  upstream.always(async (request, answer) => {
    order.push(lastWords(request.body));
    if (!free) {
      await new Promise<void>((resolve) => {
        held.push(resolve);
        void request.closed.then(resolve);
      });
    }
    if (!answer.socket.destroyed) await answerWell(request, answer);
  });
  return {
    order,
    async next() {
      await waitFor(() => held.length > 0, 'a request is held at the provider');
      held.shift()?.();
    },
    release() {
      free = true;
      for (const go of held.splice(0)) go();
    },
  };
}

export const say = (text: string) => ({ messages: [{ role: 'user', content: text }] });

/** Waits until so many stand in the queue of a model. */
export async function queued(set: Stage, depth: number, model = 'm'): Promise<void> {
  await waitFor(
    async () => (await set.gateway.metrics()).sum('llm_proxy_queue_depth', { model }) === depth,
    `${depth} wait for ${model}`,
  );
}

function lastWords(body: Buffer): string {
  const { messages } = JSON.parse(body.toString()) as { messages: { content: string }[] };
  return messages.at(-1)?.content ?? '';
}
