import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { MetricsText } from '../support/metrics-text.js';
import { ServiceProcess } from '../support/process.js';
import { ScriptedUpstream } from '../support/scripted-upstream.js';
import { MESSAGES } from '../support/stage.js';
import { waitFor } from '../support/wait-for.js';

/** Starts of a process, and the interval of the saving, on a machine that has other work. */
const SLOW_MS = 60_000;

async function setUp() {
  const directory = mkdtempSync(join(tmpdir(), 'llm-proxy-state-e2e-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  const upstream = await ScriptedUpstream.start();
  onTestFinished(() => upstream.stop());
  const file = join(directory, 'state.json');
  const config = (state: string) => ({
    server: { host: '127.0.0.1', port: 0 },
    providers: [{ id: 'p', url: upstream.url }],
    upstreams: [{ id: 'u', provider: 'p', model: 'r', quota: [{ tokens: 100, per: 'P360D' }] }],
    models: [{ name: 'm', upstreams: ['u'] }],
    state: { file: state },
  });
  const start = () => ServiceProcess.listening({ config: config(file) });
  return { config, directory, file, start, upstream };
}

const chat = (service: ServiceProcess) => service.send({ body: { model: 'm', messages: MESSAGES } });
async function left(service: ServiceProcess): Promise<number | undefined> {
  const metrics = new MetricsText((await service.get('/metrics')).text);
  return metrics.find('llm_proxy_quota_remaining', { id: 'u' })[0]?.value;
}

describe('state.file', () => {
  it(
    'keeps what was used across a restart',
    async () => {
      const { start } = await setUp();
      const first = await start();
      await chat(first).end();
      first.kill('SIGTERM');
      expect(await first.exit()).toEqual({ code: 0, signal: null });
      expect(await left(await start())).toBe(88);
    },
    SLOW_MS,
  );

  it(
    'keeps what was used across a kill, but for the last seconds',
    async () => {
      const { file, start } = await setUp();
      const first = await start();
      const before = readFileSync(file, 'utf8');
      await chat(first).end();
      await waitFor(() => readFileSync(file, 'utf8') !== before, 'the file was written', SLOW_MS);
      first.kill('SIGKILL');
      await first.exit();
      expect(await left(await start())).toBe(88);
    },
    SLOW_MS,
  );

  it('holds what a stream used that the shutdown cut', async () => {
    const { config, file, upstream } = await setUp();
    upstream.always(async (request, answer) => {
      await answer.sseHead();
      await answer.write(`data: {"choices":[{"delta":{"content":"hello"}}]}\n\n`);
      await request.closed;
    });
    const service = await ServiceProcess.listening({
      config: { ...config(file), server: { host: '127.0.0.1', port: 0, shutdown_grace: 'PT0S' } },
    });
    const answer = service.send({ body: { model: 'm', stream: true, messages: MESSAGES } });
    await answer.saw('hello');
    service.kill('SIGTERM');
    await service.exit();
    const { quotas } = JSON.parse(readFileSync(file, 'utf8')) as { quotas: Record<string, number[][]> };
    const uses = Object.values(quotas)[0] ?? [];
    // An estimate, not the 1000 and more tokens that were reserved.
    expect(uses).toHaveLength(1);
    expect(uses[0]?.[1]).toBeGreaterThan(10);
    expect(uses[0]?.[1]).toBeLessThan(200);
  });

  it('stops the start with one line where it cannot serve', async () => {
    const { config, directory } = await setUp();
    mkdirSync(join(directory, 'folder'));
    for (const [state, why] of [
      [join(directory, 'nowhere', 'state.json'), 'cannot be written (ENOENT)'],
      [join(directory, 'folder'), 'cannot be read (EISDIR)'],
    ] as const) {
      const service = new ServiceProcess({ config: config(state) });
      expect((await service.exit()).code).toBe(1);
      expect(service.stderr).toBe(`[llm-proxy] the state file ${state} ${why}\n`);
    }
  });

  it('warns about a file of something else, and keeps it', async () => {
    const { file, start } = await setUp();
    writeFileSync(file, 'precious: yes\n');
    const service = await start();
    expect(service.lines.find(({ msg }) => msg.includes('state: '))).toMatchObject({ level: 40 });
    expect(readFileSync(`${file}.corrupt`, 'utf8')).toBe('precious: yes\n');
    expect(await left(service)).toBe(100);
  });
});
