import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { RedisServer } from './redis-server.js';

/** A Redis that comes back with its data of the moment at which `take` was called. Lives for one test. */
export interface SnapshotRedis {
  readonly server: RedisServer;
  readonly take: () => Promise<void>;
  readonly comeBack: () => Promise<void>;
}

export async function withSnapshot(): Promise<SnapshotRedis> {
  const folder = mkdtempSync(join(tmpdir(), 'llm-proxy-snapshot-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const server = await RedisServer.start(['--dir', folder, '--dbfilename', 'now.rdb']);
  onTestFinished(() => server.kill());
  return {
    server,
    take: async () => {
      await server.command('SAVE');
      cpSync(join(folder, 'now.rdb'), join(folder, 'then.rdb'));
    },
    comeBack: async () => {
      await server.kill();
      cpSync(join(folder, 'then.rdb'), join(folder, 'now.rdb'));
      await server.up();
    },
  };
}
