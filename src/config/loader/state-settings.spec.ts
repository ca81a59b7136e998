import { describe, expect, it } from 'vitest';
import { file, load } from '../../../test/support/small-config.js';
import { formatProblem } from './config-problem.js';
import { loadConfig } from './load-config.js';

const withState = (state: string) => file({ end: `state: ${state}` });

function problems(state: string, environment = {}): string[] {
  const result = loadConfig({ text: withState(state) }, environment);
  return result.ok ? [] : result.problems.map(formatProblem);
}

describe('state', () => {
  it('is memory unless the file says otherwise', () => {
    expect(load(file({})).config.state.redis).toBeNull();
    expect(load(withState('{ store: memory }')).config.state.redis).toBeNull();
  });

  it('takes redis with its defaults, and every key', () => {
    expect(load(withState('{ store: redis, url: "redis://r:6379" }')).config.state.redis).toEqual({
      url: 'redis://r:6379',
      prefix: 'llm-proxy:',
      onError: 'local',
      timeoutMs: 250,
    });
    const all = '{ store: redis, url: "rediss://:${PW}@r/2", prefix: "a:", on_error: strict, timeout: PT1S }';
    expect(load(withState(all), { PW: 'hush' }).config.state.redis).toEqual({
      url: 'rediss://:hush@r/2',
      prefix: 'a:',
      onError: 'strict',
      timeoutMs: 1000,
    });
  });

  it.each([
    ['{ store: redis }', 'state.url', 'redis://redis:6379'],
    ['{ store: etcd }', 'state.store', 'memory or redis'],
    ['{ store: redis, url: "redis://r", on_error: shrug }', 'state.on_error', 'local, reject or strict'],
    ['{ store: redis, url: "http://r" }', 'state.url', 'redis or rediss'],
    ['{ store: redis, url: "redis://r/sub/db" }', 'state.url', 'number of a database'],
    ['{ store: redis, url: "redis://r/0?x=1" }', 'state.url', 'query'],
    ['{ store: redis, url: "redis://:a%zz@r" }', 'state.url', 'no escape'],
    ['{ store: redis, url: "redis://r", prefix: "a b" }', 'state.prefix', 'without spaces'],
    ['{ store: redis, url: "redis://r", timeout: PT0S }', 'state.timeout', 'longer than PT0S'],
    ['{ store: redis, url: "redis://r", timeout: PT6S }', 'state.timeout', 'at most PT5S'],
    ['{ store: redis, url: "${MISSING}" }', 'state.url', 'MISSING'],
    ['{ stoer: redis }', 'state.stoer', 'store'],
    ['redis', 'state', 'mapping'],
  ])('%s is refused at %s', (state, path, right) => {
    const found = problems(state);
    expect(found).toHaveLength(1);
    expect(found[0]).toContain(path);
    expect(found[0]).toContain(right);
  });

  it.each(['hush hush', 'hush/hush', 'hush#hush', 'hush?hush', 'hu@sh/x', 'hush\\x'])(
    'says how a password is written that is not percent-encoded: %s',
    (password) => {
      const found = problems('{ store: redis, url: "redis://:${PW}@r:6379" }', { PW: password });
      expect(found).toHaveLength(1);
      expect(found[0]).toContain('percent-encoded');
      expect(found[0]).not.toContain('ush');
    },
  );

  it('never shows the url', () => {
    for (const url of ['http://u:hush@r', 'redis://:hush@r/x', 'redis://:hush@', 'hush'])
      expect(problems(`{ store: redis, url: "${url}" }`).join()).not.toContain('hush');
  });

  it('warns of what has no meaning in memory', () => {
    expect(load(withState('{ url: "redis://:hush@r" }')).warnings.join()).toContain('state.url');
  });
});
