import { describe, expect, it } from 'vitest';
import { readEnvironment } from './environment.js';

describe('readEnvironment', () => {
  it('has defaults, also for empty variables', () => {
    for (const variables of [{}, { CONFIG_PATH: '', LOG_LEVEL: '', LOG_FORMAT: '' }]) {
      expect(readEnvironment(variables, false, true)).toEqual({
        configPath: 'config.yaml',
        logLevel: 'info',
        logFormat: 'json',
        variables,
        npmInTerminal: false,
        warnings: [],
      });
    }
  });
  it('writes for people in a terminal', () => {
    expect(readEnvironment({}, true).logFormat).toBe('pretty');
    expect(readEnvironment({ LOG_FORMAT: 'json' }, true).logFormat).toBe('json');
    expect(readEnvironment({ LOG_FORMAT: 'pretty' }, false).logFormat).toBe('pretty');
  });
  it('takes levels in any case', () => {
    expect(readEnvironment({ LOG_LEVEL: 'DEBUG', CONFIG_PATH: '/etc/x.yaml' }, false)).toMatchObject({
      logLevel: 'debug',
      configPath: '/etc/x.yaml',
      warnings: [],
    });
  });
  it('knows npm in a terminal', () => {
    const npm = { npm_lifecycle_event: 'start' };
    expect(readEnvironment(npm, false, true).npmInTerminal).toBe(true);
    expect(readEnvironment(npm, true, false).npmInTerminal).toBe(false);
    expect(readEnvironment({}, true, true).npmInTerminal).toBe(false);
  });
  it('warns about what it does not know', () => {
    const { logLevel, logFormat, warnings } = readEnvironment(
      { LOG_LEVEL: 'loud\n', LOG_FORMAT: 'xml\u001b' },
      false,
    );
    expect([logLevel, logFormat]).toEqual(['info', 'json']);
    expect(warnings).toEqual([
      'LOG_LEVEL="loud" is unknown, info is used; write one of trace, debug, info, warn, error, fatal, silent',
      'LOG_FORMAT="xml\\u001b" is unknown, json is used; write one of json, pretty',
    ]);
  });
});
