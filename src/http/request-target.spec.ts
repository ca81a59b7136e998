import { describe, expect, it } from 'vitest';
import { parseTarget } from './request-target.js';

describe('parseTarget', () => {
  it.each([
    ['/v1/models', '/v1/models', ''],
    ['/a?b=c?d', '/a', '?b=c?d'],
    ['//a/', '//a/', ''],
    ['http://host/a?b', '/a', '?b'],
    ['HTTPS://host:443/a', '/a', ''],
    ['http://[::1]:8100/a', '/a', ''],
    ['http://host', '', ''],
    ['http://host?b', '', '?b'],
  ])('takes %s', (target, path, query) => {
    expect(parseTarget(target, 'GET')).toEqual({ path, query, isSound: true });
  });

  it.each([
    '*',
    'http://',
    'http:///healthz',
    'http://:80/healthz',
    'http://user@host/healthz',
    'http://host:a/healthz',
    'http://[::1/healthz',
    'ftp://host/healthz',
    'host:80',
    '',
    'healthz',
    '/v1/models?x=1#y',
    '/v1/models?#',
    '/v1/models#y',
    'http://host/v1/models?x#y',
    'http://host#y',
  ])('refuses %s', (target) => {
    expect(parseTarget(target, 'GET').isSound).toBe(false);
  });

  it('knows the options of the whole server', () => {
    expect(parseTarget('*', 'OPTIONS').isSound).toBe(true);
  });
});
