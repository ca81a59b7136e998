import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';
import { waitFor } from './support/wait-for.js';

const root = fileURLToPath(new URL('../', import.meta.url));
const running: ChildProcess[] = [];
afterEach(() => {
  for (const child of running.splice(0)) child.kill('SIGKILL');
});

interface Demo {
  readonly child: ChildProcess;
  readonly said: () => string;
  readonly exitCode: Promise<number | null>;
}

function start(port: number): Demo {
  // Never builds: other tests use the same build at the same time.
  const child = spawn(process.execPath, ['examples/demo/run.mjs', '--no-build'], {
    cwd: root,
    env: { ...process.env, LLM_PROXY_DEMO_PORT: String(port) },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  running.push(child);
  let said = '';
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (piece: Buffer) => (said += piece.toString()));
  return { child, said: () => said, exitCode: once(child, 'close').then(([code]) => code as number | null) };
}

async function takenPort(): Promise<{ port: number; free: () => Promise<unknown> }> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()));
  const { port } = server.address() as AddressInfo;
  return { port, free: () => new Promise((resolve) => server.close(resolve)) };
}

interface Printed {
  readonly url: string;
  readonly body: string;
}

/** The requests as they are printed, so that what is tested is what is read. */
function printedRequests(text: string): Printed[] {
  return [...text.matchAll(/curl [^\n]*?(http:\/\/\S+chat\/completions)[^\n]*?-d '([^']*)'/g)].map(
    ([, url, body]) => ({
      url: url ?? '',
      body: body ?? '',
    }),
  );
}

const send = ({ url, body }: Printed): Promise<Response> =>
  fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body });

const upstreamOf = (answer: Response): string | null => answer.headers.get('x-llm-proxy-upstream');

describe('the demo', () => {
  it(
    'prints three lines that show what they say, and ends with the signal',
    { timeout: 60_000 },
    async () => {
      const { port, free } = await takenPort();
      await free();
      const demo = start(port);
      await waitFor(() => demo.said().includes('End with Ctrl-C'), 'the demo is ready', 30_000);
      const [streamed, twice, thoughts, ...surplus] = printedRequests(demo.said());
      if (streamed === undefined || twice === undefined || thoughts === undefined)
        throw new Error(demo.said());
      expect(surplus).toEqual([]);

      const first = await send(streamed);
      expect(upstreamOf(first)).toBe('local-gpu');
      const events = (await first.text()).split('\n\n').filter((event) => event !== '');
      expect(events.length).toBeGreaterThan(10);
      expect(events.at(-1)).toBe('data: [DONE]');
      expect(events.at(-2)).toContain('"usage"');

      const both = await Promise.all([send(twice), send(twice)]);
      expect(new Set(both.map(upstreamOf))).toEqual(new Set(['local-gpu', 'paid-thinker']));
      await Promise.all(both.map((answer) => answer.text()));

      const answer = (await (await send(thoughts)).json()) as {
        choices: { message: { content: string; reasoning_content: string } }[];
        usage: { total_tokens: number };
      };
      expect(answer.choices[0]?.message.reasoning_content).not.toBe('');
      expect(answer.choices[0]?.message.content).toContain('6 * 7 = 42');
      expect(answer.choices[0]?.message.content).not.toContain('<think>');
      expect(answer.usage.total_tokens).toBeGreaterThan(0);

      const attempts = new Set<string | null>();
      const cheap = {
        url: streamed.url,
        body: '{"model":"cheap","max_tokens":2,"messages":[{"role":"user","content":"hi"}]}',
      };
      for (let i = 0; i < 6; i++) {
        const cheapAnswer = await send(cheap);
        expect(cheapAnswer.status).toBe(200);
        attempts.add(cheapAnswer.headers.get('x-llm-proxy-attempts'));
        await cheapAnswer.text();
      }
      expect(attempts).toContain('2');

      // As from a terminal, where npm forwards the signal once more.
      demo.child.kill('SIGINT');
      demo.child.kill('SIGINT');
      expect(await demo.exitCode).toBe(0);
      await expect(fetch(streamed.url)).rejects.toThrow();
    },
  );

  it('says what to do where its port is taken', async () => {
    const { port, free } = await takenPort();
    const demo = start(port);
    expect(await demo.exitCode).toBe(1);
    expect(demo.said()).toMatch(
      new RegExp(`^\\s*Port ${port} is in use. Choose another: LLM_PROXY_DEMO_PORT=\\d+ npm run demo\\s*$`),
    );
    await free();
  });
});
