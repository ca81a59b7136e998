import type { Server, Socket } from 'node:net';
import type { Clock } from '../../src/common/time/clock.js';
import type { ProviderConfig } from '../../src/config/gateway-config.js';
import { ProviderClient } from '../../src/upstreams/provider-client.js';
import type { TransportFailure } from '../../src/upstreams/transport-failure.js';
import { type AnswerListener, UpstreamCall } from '../../src/upstreams/upstream-call.js';
import { type Script, ScriptedUpstream } from './scripted-upstream.js';
import { waitFor } from './wait-for.js';

/** Run after each test, last first. */
const cleanUps: (() => Promise<void> | void)[] = [];

export async function scripted(...scripts: Script[]): Promise<ScriptedUpstream> {
  const upstream = await ScriptedUpstream.start();
  cleanUps.push(() => upstream.stop());
  return upstream.next(...scripts);
}

export function clientOf(url: string, clock?: Clock): ProviderClient {
  const client = new ProviderClient({ url, proxy: null, tls: null } as ProviderConfig, clock);
  cleanUps.push(() => client.close());
  return client;
}

export interface CallOptions {
  readonly path?: string;
  readonly headers?: string[];
  readonly body?: readonly Buffer[];
}

export function call(client: ProviderClient, options: CallOptions = {}): { told: Told; call: UpstreamCall } {
  const told = new Told();
  const body = options.body ?? [Buffer.from('{"a":1}')];
  const bodyBytes = body.reduce((sum, { length }) => sum + length, 0);
  const headers = [
    'content-type',
    'application/json',
    'content-length',
    String(bodyBytes),
    ...(options.headers ?? []),
  ];
  const path = options.path ?? `${client.basePath}/chat/completions`;
  const request = { method: 'POST' as const, path, headers, body, bodyBytes };
  return { told, call: new UpstreamCall(client, request, told, () => told.events.push('over')) };
}

export async function whole(client: ProviderClient, options: CallOptions = {}): Promise<Told> {
  const made = call(client, options);
  made.call.start();
  await waitFor(() => made.told.settled, 'the call settled');
  return made.told;
}

export async function cleanUp(): Promise<void> {
  for (const each of cleanUps.splice(0).toReversed()) await each();
}

/** What a call told, in order. */
export class Told implements AnswerListener {
  readonly events: string[] = [];
  readonly chunks: Buffer[] = [];
  onChunk: ((chunk: Buffer) => boolean) | null = null;
  failure: TransportFailure | null = null;

  onHead(status: number): void {
    this.events.push(`head ${status}`);
  }
  onData(chunk: Buffer): boolean {
    this.chunks.push(Buffer.from(chunk));
    return this.onChunk?.(chunk) ?? true;
  }
  onEnd(): void {
    this.events.push('end');
  }
  onFailure(failure: TransportFailure): void {
    this.failure = failure;
    this.events.push('failure');
  }
  get text(): string {
    return Buffer.concat(this.chunks).toString();
  }
  get over(): number {
    return this.events.filter((event) => event === 'over').length;
  }
  get settled(): boolean {
    return this.events.includes('end') || this.events.includes('failure');
  }
}

export async function listen(server: Server): Promise<void> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const sockets = new Set<Socket>();
  server.on('connection', (socket) => sockets.add(socket));
  cleanUps.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
}

export function urlOf(server: Server): string {
  const address = server.address();
  return `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}/v1`;
}
