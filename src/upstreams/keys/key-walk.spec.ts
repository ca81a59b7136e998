import { describe, expect, it } from 'vitest';
import type { ErrorClass } from '../../contracts/error-class.js';
import { KeyWalk } from './key-walk.js';
import { PoolKey } from './pool-key.js';
import { UpstreamKeys } from './upstream-keys.js';

function walk(ids: string, failures: readonly (ErrorClass | 'timeout')[], retries = 1) {
  const keys = ids
    .split('')
    .map((id) => new PoolKey({ id, value: id, expiresAtMs: null, disabled: false, quota: [] }));
  const view = new UpstreamKeys('u', keys, 'ordered', { now: () => 0 }, () => 0);
  const walked = new KeyWalk(view, retries);
  const path = [walked.key?.id ?? '-'];
  for (const failure of failures) {
    const timedOut = failure === 'timeout';
    walked.fail({ class: timedOut ? 'server_error' : failure, timedOut });
    path.push(walked.key?.id ?? '-');
  }
  return { path: path.join(''), broken: walked.broken };
}

describe('KeyWalk', () => {
  it.each([
    ['xyz', ['rate_limited', 'rate_limited', 'rate_limited'], 'xyz-', false],
    ['xyz', ['unauthorized', 'quota_exhausted', 'busy'], 'xyz-', false],
    ['x', ['rate_limited'], 'x-', false],
    ['x', ['busy'], 'x-', false],
    ['xyz', ['model_gone'], 'x-', false],
    ['xyz', ['context_length'], 'x-', false],
    ['xyz', ['bad_request'], 'x-', false],
    ['xyz', ['server_error', 'server_error'], 'xy-', true],
    ['xyz', ['server_error', 'rate_limited', 'server_error'], 'xyz-', true],
    ['x', ['server_error', 'server_error'], 'xx-', true],
    ['xy', ['rate_limited', 'server_error', 'server_error'], 'xyy-', true],
    ['xyz', ['timeout'], 'x-', true],
    ['xyz', ['server_error', 'timeout'], 'xy-', true],
    ['', [], '-', false],
  ] as const)('%j after %j goes %s', (ids, failures, path, broken) => {
    expect(walk(ids, failures)).toEqual({ path, broken });
  });

  it('retries as often as it may', () => {
    expect(walk('xy', ['server_error'], 0)).toEqual({ path: 'x-', broken: true });
    expect(walk('xy', ['server_error', 'server_error', 'server_error'], 2)).toEqual({
      path: 'xyy-',
      broken: true,
    });
  });

  it('goes on with the next key where nothing was sent with one after all, and keeps what had failed', () => {
    const keys = ['x', 'y', 'z'].map(
      (id) => new PoolKey({ id, value: id, expiresAtMs: null, disabled: false, quota: [] }),
    );
    const walked = new KeyWalk(new UpstreamKeys('u', keys, 'ordered', { now: () => 0 }, () => 0), 1);
    walked.fail({ class: 'server_error', timedOut: false });
    expect([walked.key?.id, walked.retried]).toEqual(['y', true]);
    expect([walked.skip()?.id, walked.retried, walked.broken]).toEqual(['z', false, true]);
    expect(walked.skip()).toBeNull();
    expect(walked.key).toBeNull();
  });

  it('begins with the preferred key, without taking anybody’s turn, where it can be used', () => {
    const keys = ['x', 'y', 'z'].map(
      (id) => new PoolKey({ id, value: id, expiresAtMs: null, disabled: id === 'z', quota: [] }),
    );
    const view = new UpstreamKeys('u', keys, 'round_robin', { now: () => 0 }, () => 0);
    const walked = new KeyWalk(view, 1, 'y');
    expect(walked.key?.id).toBe('y');
    walked.fail({ class: 'rate_limited', timedOut: false });
    expect(walked.key?.id).toBe('x');
    walked.fail({ class: 'rate_limited', timedOut: false });
    expect(walked.key).toBeNull();
    // It rests, is disabled, or is none of this pool.
    keys[1]?.restAt('u', 0, 1000);
    expect(new KeyWalk(view, 1, 'y').key?.id).toBe('x');
    expect(new KeyWalk(view, 1, 'z').key?.id).toBe('x');
    expect(new KeyWalk(view, 1, 'gone').key?.id).toBe('x');
  });
});
