import { SimpleError } from '@redis/client';
import { describe, expect, it } from 'vitest';
import { StateUnavailable } from '../state-unavailable.js';
import { isRefusal, shortReason } from './refusals.js';

describe('what Redis refuses', () => {
  it.each([
    ["READONLY You can't write against a read only replica. script: ab, on @user_script:1.", 'READONLY:'],
    // As Redis 6 says it.
    [
      "ERR Error running script (call to f_ab): @user_script:13: @user_script: 13: -READONLY You can't write against a read only replica.",
      'READONLY:',
    ],
    ['NOREPLICAS Not enough good replicas to write.', 'NOREPLICAS:'],
    ["OOM command not allowed when used memory > 'maxmemory'.", 'OOM:'],
    ['LOADING Redis is loading the dataset in memory', 'LOADING:'],
    ['CLUSTERDOWN The cluster is down', 'CLUSTERDOWN:'],
    ['MOVED 1234 10.0.0.1:6379', 'another node'],
    ['EXECABORT Transaction discarded because of previous errors.', 'EXECABORT'],
    ["NOPERM this user has no permissions to run the 'evalsha' command", 'may not run evalsha'],
    [
      "ERR The user executing the script can't run this command or subcommand script: ab",
      'may not run a command',
    ],
    [
      "ERR The user executing the script can't publish to the channel mentioned in the command",
      'channels of',
    ],
    ["ERR The user executing the script can't access at least one of the keys mentioned", 'keys of'],
    ['SELECT 99 failed: ERR DB index is out of range', 'no database of the number'],
  ])('is told in words that hold nothing of it but its class: %s', (message, words) => {
    const error = new SimpleError(message);
    expect(isRefusal(error)).toBe(true);
    expect(shortReason(error)).toContain(words);
    expect(shortReason(error)).not.toMatch(/script:|10\.0\.0\.1|f_ab/);
  });

  it.each([
    'WRONGTYPE Operation against a key holding the wrong kind of value',
    'ERR too many results to unpack script: ab, on @user_script:3.',
    'NOSCRIPT No matching script. Please use EVAL.',
  ])('is not what one request alone was answered: %s', (message) => {
    expect(isRefusal(new SimpleError(message))).toBe(false);
    expect(shortReason(new SimpleError(message))).toMatch(/^[A-Z]+$/);
  });

  it('is not a broken connection either', () => {
    const broken = Object.assign(new Error('connect ECONNREFUSED 10.0.0.1:6379'), { code: 'ECONNREFUSED' });
    expect(isRefusal(broken)).toBe(false);
    expect(shortReason(broken)).toBe('ECONNREFUSED');
    expect(shortReason(new StateUnavailable('not connected'))).toBe('not connected');
  });
});
