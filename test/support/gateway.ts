import 'reflect-metadata';
import type { AddressInfo, Socket } from 'node:net';
import type { Server } from 'node:http';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { createApp, loadConfig } from '../../src/app.factory.js';
import type { GatewayConfig } from '../../src/config/gateway-config.js';
import type { LogLevel } from '../../src/config/environment.js';
import { createRootLogger } from '../../src/observability/log/root-logger.js';
import { MetricsText } from './metrics-text.js';
import { RawConnection, type RawAnswer, type RawRequest } from './raw-client.js';
import { OutputWatch } from './secret-watch.js';
import { waitFor } from './wait-for.js';

export interface LogLine {
  readonly level: number;
  readonly msg: string;
  readonly [field: string]: unknown;
}

export interface GatewayOptions {
  readonly yaml?: string;
  /** The file as an object; JSON is YAML. */
  readonly config?: object;
  readonly plugins?: readonly unknown[];
  /** Where relative plugin paths of the file start. */
  readonly directory?: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly logLevel?: LogLevel;
  readonly pluginStartLimitMs?: number;
}

/** The service in this process, listening on a free port of the loopback. Lives for one test. */
export class TestGateway {
  readonly #connections: RawConnection[] = [];

  private constructor(
    readonly app: NestFastifyApplication,
    readonly config: GatewayConfig,
    readonly lines: readonly LogLine[],
  ) {}

  static async start(options: GatewayOptions): Promise<TestGateway> {
    const text = options.yaml ?? JSON.stringify(options.config);
    const variables = options.environment ?? {};
    const loaded = loadConfig({ text, directory: options.directory ?? '.' }, variables);
    if (!loaded.ok)
      throw new Error(`the test's configuration is refused: ${JSON.stringify(loaded.problems)}`);
    const lines: LogLine[] = [];
    const logLevel = options.logLevel ?? 'debug';
    const watch = new OutputWatch('the log');
    const write = (line: string) => {
      watch.see(line);
      lines.push(JSON.parse(line) as LogLine);
    };
    const app = await createApp({
      config: loaded.config,
      plugins: options.plugins ?? [],
      ...(options.pluginStartLimitMs === undefined ? {} : { pluginStartLimitMs: options.pluginStartLimitMs }),
      environment: {
        configPath: '',
        logLevel,
        logFormat: 'json',
        variables,
        npmInTerminal: false,
        warnings: [],
      },
      logger: createRootLogger({ level: logLevel, format: 'json', destination: { write } }),
    });
    watchServer(app.getHttpServer());
    await app.listen({ host: '127.0.0.1', port: 0 });
    return new TestGateway(app, loaded.config, lines);
  }

  get server(): Server {
    return this.app.getHttpServer();
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** Texts of the log lines so far. */
  get messages(): string[] {
    return this.lines.map(({ msg }) => msg);
  }

  connect(): RawConnection {
    const connection = new RawConnection(this.port);
    this.#connections.push(connection);
    return connection;
  }

  /** On a connection of its own. */
  send(request: RawRequest): RawAnswer {
    return this.connect().send(request);
  }

  get(path: string): Promise<RawAnswer> {
    return this.send({ method: 'GET', path, headers: { connection: 'close' } }).end();
  }

  async metrics(): Promise<MetricsText> {
    return new MetricsText((await this.get('/metrics')).text);
  }

  async inflight(upstream: string): Promise<number> {
    return (await this.metrics()).sum('llm_proxy_upstream_inflight', { upstream });
  }

  /** Waits until the log holds a line with this text. */
  async logged(text: string): Promise<LogLine> {
    await waitFor(() => this.lines.some(({ msg }) => msg.includes(text)), `the log held "${text}"`);
    return this.lines.find(({ msg }) => msg.includes(text)) as LogLine;
  }

  /** Every slot must come back once all clients are gone: the one rule that no outcome may break. */
  async close(): Promise<void> {
    for (const connection of this.#connections) connection.close();
    try {
      await waitFor(async () => {
        const gauges = (await this.metrics()).find('llm_proxy_upstream_inflight');
        return gauges.length > 0 && gauges.every(({ value }) => value === 0);
      }, 'no slot was taken any more');
    } finally {
      await this.app.close();
    }
  }
}

/** Everything the service writes to any client, libraries' clients too. */
function watchServer(server: Server): void {
  server.on('connection', (socket: Socket) => {
    const watch = new OutputWatch('an answer');
    const write = socket.write.bind(socket) as (...args: unknown[]) => boolean;
    socket.write = (...args: unknown[]) => {
      watch.see(args[0] as Buffer | string);
      return write(...args);
    };
  });
}
