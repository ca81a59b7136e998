import 'reflect-metadata';
import { Inject, Injectable, Module } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { describe, expect, it } from 'vitest';
import { ConfigModule } from './config.module.js';
import { ConfigStore } from './config.store.js';
import { readEnvironment } from './environment.js';
import type { GatewayConfig } from './gateway-config.js';
import { loadConfig } from './loader/load-config.js';

function configOn(port: number): GatewayConfig {
  const text = `server: { port: ${port} }\nproviders: [{ id: gpt-4.1, url: "http://h", key: sk-secret-in-file }]\nupstreams: [{ id: u, provider: gpt-4.1, model: r }]\nmodels: [{ name: m, upstreams: [u] }]\n`;
  const result = loadConfig({ text }, {});
  if (!result.ok) throw new Error('the test has a bad file');
  return result.config;
}

@Injectable()
class Reader {
  constructor(@Inject(ConfigStore) readonly store: ConfigStore) {}
}
@Module({ providers: [Reader] })
class FeatureModule {}

describe('ConfigModule', () => {
  it('hands the same snapshot to every module', async () => {
    const config = configOn(81);
    const environment = readEnvironment({}, false);
    const module = await Test.createTestingModule({
      imports: [ConfigModule.forRoot({ config, environment }), FeatureModule],
    }).compile();
    const { store } = module.get(Reader);
    expect(store.current).toBe(config);
    expect(JSON.stringify(process.env)).not.toContain('sk-secret-in-file');
    await module.close();
  });
});

describe('ConfigStore', () => {
  it('replaces the snapshot as a whole and tells its listeners', () => {
    const [first, second] = [configOn(1), configOn(2)];
    const store = new ConfigStore(first);
    const seen: number[][] = [];
    const stop = store.onChange((config, before) => seen.push([before.server.port, config.server.port]));
    store.replace(second);
    expect(store.current).toBe(second);
    stop();
    store.replace(first);
    expect(seen).toEqual([[1, 2]]);
  });
  it('tells the others when one listener throws', () => {
    const store = new ConfigStore(configOn(1));
    const seen: number[] = [];
    store.onChange(() => {
      throw new Error('broken');
    });
    store.onChange((config) => seen.push(config.server.port));
    expect(() => store.replace(configOn(2))).toThrow(AggregateError);
    expect([seen, store.current.server.port]).toEqual([[2], 2]);
  });
});
