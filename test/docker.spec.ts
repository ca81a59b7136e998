import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { waitFor } from './support/wait-for.js';

const root = fileURLToPath(new URL('../', import.meta.url));
const read = (path: string): string => readFileSync(join(root, path), 'utf8');
const instructions = read('docker/Dockerfile')
  .replaceAll('\\\n', ' ')
  .split('\n')
  .map((line) => /^([A-Z]+) +(.*)$/.exec(line.trim()))
  .filter((found) => found !== null)
  .map(([, name, rest]) => ({ name: name ?? '', rest: rest ?? '' }));
const all = (name: string): string[] =>
  instructions.filter((found) => found.name === name).map(({ rest }) => rest);

interface Copy {
  readonly from: string | null;
  readonly sources: readonly string[];
}
const copies: Copy[] = all('COPY').map((rest) => {
  const words = rest.split(/ +/);
  const from = words[0]?.startsWith('--from=') ? (words.shift() ?? '').slice('--from='.length) : null;
  return { from, sources: words.slice(0, -1) };
});
const fromContext = copies.filter(({ from }) => from === null).flatMap(({ sources }) => sources);
const stages = all('FROM').map((rest) => /^(\S+) AS (\S+)$/.exec(rest));

describe('docker/Dockerfile', () => {
  it('builds in named stages on Node 24', () => {
    expect(stages.map((stage) => stage?.[2])).toEqual(['build', 'production-dependencies', 'runtime']);
    for (const stage of stages) expect(stage?.[1]).toBe('node:24-slim');
  });

  it.each(fromContext)('copies %s, which exists and is no secret of .dockerignore', (source) => {
    const path = source.replace(/^\.\//, '');
    expect(existsSync(join(root, path))).toBe(true);
    const allowed = read('.dockerignore').split('\n');
    expect(allowed).toContain(`!${path.split('/')[0]}`);
  });

  it('copies from stages that exist', () => {
    const names = stages.map((stage) => stage?.[2]);
    for (const { from } of copies) if (from !== null) expect(names).toContain(from);
  });

  it('runs as an ordinary user, says its port and checks its health', () => {
    expect(all('USER')).toEqual(['node']);
    expect(all('EXPOSE')).toEqual(['8100']);
    expect(all('HEALTHCHECK').join()).toContain('/healthz');
    expect(JSON.parse(all('CMD').at(-1) ?? '')).toEqual(['node', 'dist/main.js']);
    expect(instructions.findIndex(({ name }) => name === 'USER')).toBeLessThan(
      instructions.findIndex(({ name }) => name === 'CMD'),
    );
  });
});

describe('docker/compose.yaml', () => {
  const service = (
    parse(read('docker/compose.yaml')) as { services: Record<string, Record<string, unknown>> }
  ).services['llm-proxy'];

  it('builds this Dockerfile and mounts the configuration where the image looks for it', () => {
    expect(service?.['build']).toEqual({ context: '..', dockerfile: 'docker/Dockerfile' });
    const path = /CONFIG_PATH=(\S+)/.exec(all('ENV').join(' '))?.[1];
    expect(service?.['volumes']).toEqual([`../config.yaml:${path}:ro`]);
  });

  it('needs no writable root', () => {
    expect(service).toMatchObject({ read_only: true, tmpfs: ['/tmp'], cap_drop: ['ALL'] });
  });
});

describe('what the image runs', () => {
  const folder = mkdtempSync(join(tmpdir(), 'llm-proxy-image-'));
  let child: ChildProcess | null = null;
  afterAll(() => {
    child?.kill('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  });

  it('starts with the production dependencies alone', { timeout: 120_000 }, async () => {
    for (const name of ['package.json', 'package-lock.json', '.npmrc', 'dist', 'config']) {
      cpSync(join(root, name), join(folder, name), { recursive: true });
    }
    await promisify(execFile)('npm', ['ci', '--omit=dev', '--ignore-scripts', '--prefer-offline'], {
      cwd: folder,
    });
    expect(existsSync(join(folder, 'node_modules/vitest'))).toBe(false);
    const config = read('config/demo.yaml').replace(/^ {2}port: .*$/m, '  port: 0');
    writeFileSync(join(folder, 'config.yaml'), config);

    const [command = '', ...args] = JSON.parse(all('CMD').at(-1) ?? '[]') as string[];
    expect(command).toBe('node');
    const service = spawn(process.execPath, args, {
      cwd: folder,
      env: {
        PATH: process.env['PATH'],
        NODE_ENV: 'production',
        CONFIG_PATH: join(folder, 'config.yaml'),
        LOG_FORMAT: 'json',
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    child = service;
    let said = '';
    for (const stream of [service.stdout, service.stderr])
      stream.on('data', (piece: Buffer) => (said += piece.toString()));
    const ended = once(service, 'close').then(([code]) => code as number | null);
    await waitFor(
      () => /server: bind \S+ port=\d+/.test(said) || service.exitCode !== null,
      'the service listens',
      30_000,
    );
    const port = /server: bind \S+ port=(\d+)/.exec(said)?.[1];
    expect(said).toContain('server: bind');
    const health = await fetch(`http://127.0.0.1:${port}/healthz`);
    expect(health.status).toBe(200);
    service.kill('SIGTERM');
    expect(await ended).toBe(0);
  });
});
