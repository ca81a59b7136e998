import { describe, expect, it } from 'vitest';
import type { ThinkTagsMode } from '../config/gateway-config.js';
import type { Attempt, Exchange } from '../contracts/exchange.js';
import type { Target } from '../contracts/interceptor.js';
import { ThinkTagInterceptor } from './think-tag.interceptor.js';
import { ThinkTagTransform } from './think-tag.transform.js';

describe('ThinkTagInterceptor', () => {
  it('opens a transform of its own for each answer, and none where tags are off', () => {
    const interceptor = new ThinkTagInterceptor();
    const target = (thinkTags: ThinkTagsMode): Target =>
      ({ operation: 'chat', upstream: { thinkTags } }) as unknown as Target;
    const open = (thinkTags: ThinkTagsMode): unknown =>
      interceptor.onResponse({} as Exchange, target(thinkTags) as unknown as Attempt);
    expect(
      ['off', 'split', 'strip'].map((mode) => interceptor.appliesTo(target(mode as ThinkTagsMode))),
    ).toEqual([false, true, true]);
    expect(open('off')).toBeNull();
    expect(open('split')).toBeInstanceOf(ThinkTagTransform);
    expect(open('strip')).not.toBe(open('strip'));
  });
});
