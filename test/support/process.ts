import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import { RawConnection, type RawAnswer, type RawRequest } from './raw-client.js';
import { OutputWatch } from './secret-watch.js';
import { waitFor, within } from './wait-for.js';

const MAIN = fileURLToPath(new URL('../../dist/main.js', import.meta.url));
const START_DEADLINE_MS = 20_000;

export interface ProcessOptions {
  /** Content of the file that CONFIG_PATH names; objects are written as JSON. */
  readonly config?: string | object;
  readonly args?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  /** Further files beside the configuration. */
  readonly files?: Readonly<Record<string, string>>;
  /** Where standard output goes instead of {@link ServiceProcess.stdout}. */
  readonly stdoutTo?: string;
  /** Most file descriptors that the process may have. */
  readonly openFilesLimit?: number;
  /** Leaves CONFIG_PATH unset: the file is then `config.yaml` in the working directory. */
  readonly withoutConfigPath?: boolean;
}

/** The built service as a process of its own, in a temporary directory. Lives for one test. */
export class ServiceProcess {
  stdout = '';
  stderr = '';
  readonly directory: string;
  readonly child: ChildProcess;
  readonly #exit = Promise.withResolvers<{ code: number | null; signal: string | null }>();
  exited = false;

  constructor(options: ProcessOptions) {
    this.directory = mkdtempSync(join(tmpdir(), 'llm-proxy-e2e-'));
    for (const [name, text] of Object.entries(options.files ?? {}))
      writeFileSync(join(this.directory, name), text);
    const path = join(this.directory, 'config.yaml');
    const { config } = options;
    if (config !== undefined)
      writeFileSync(path, typeof config === 'string' ? config : JSON.stringify(config));
    const { openFilesLimit, stdoutTo } = options;
    const command = [process.execPath, MAIN, ...(options.args ?? [])];
    if (openFilesLimit !== undefined)
      command.unshift('sh', '-c', `ulimit -n ${openFilesLimit}; exec "$0" "$@"`);
    const stdout = stdoutTo === undefined ? 'pipe' : openSync(stdoutTo, 'w');
    this.child = spawn(command[0] as string, command.slice(1), {
      cwd: this.directory,
      env: {
        PATH: process.env['PATH'],
        ...(options.withoutConfigPath === true ? {} : { CONFIG_PATH: path }),
        ...options.environment,
      },
      stdio: ['ignore', stdout, 'pipe'],
    });
    if (typeof stdout === 'number') closeSync(stdout);
    for (const name of ['stdout', 'stderr'] as const) {
      const watch = new OutputWatch(name);
      this.child[name]?.on('data', (bytes: Buffer) => {
        watch.see(bytes);
        this[name] += bytes.toString('utf8');
      });
    }
    this.child.on('close', (code, signal) => {
      this.exited = true;
      this.#exit.resolve({ code, signal });
    });
    onTestFinished(async () => {
      if (!this.exited) this.child.kill('SIGKILL');
      await this.#exit.promise;
      rmSync(this.directory, { recursive: true, force: true });
    });
  }

  /** Started and listening. */
  static async listening(options: ProcessOptions): Promise<ServiceProcess> {
    const service = new ServiceProcess(options);
    await waitFor(
      () => service.exited || service.#bound !== undefined,
      'the service listened',
      START_DEADLINE_MS,
    );
    if (service.exited) throw new Error(`the service ended at its start: ${service.stdout}${service.stderr}`);
    return service;
  }

  get #bound(): string | undefined {
    return /server: bind host=\S+ port=(\d+)/.exec(this.stdout)?.[1];
  }

  get port(): number {
    return Number(this.#bound);
  }

  /** Log lines so far, parsed. */
  get lines(): { msg: string; level: number }[] {
    return this.stdout
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as { msg: string; level: number });
  }

  send(request: RawRequest): RawAnswer {
    return new RawConnection(this.port).send(request);
  }

  get(path: string): Promise<RawAnswer> {
    return this.send({ method: 'GET', path, headers: { connection: 'close' } }).end();
  }

  kill(signal: NodeJS.Signals): void {
    this.child.kill(signal);
  }

  exit(): Promise<{ code: number | null; signal: string | null }> {
    return within(this.#exit.promise, 'the end of the process', START_DEADLINE_MS);
  }
}
