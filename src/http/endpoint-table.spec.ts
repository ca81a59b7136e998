import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { resolveEndpoint } from './endpoint-table.js';

describe('resolveEndpoint', () => {
  it.each([
    ['/v1/chat/completions', 'chat', 'POST'],
    ['/chat/completions', 'chat', 'POST'],
    ['/v1/chat/completions/', 'chat', 'POST'],
    ['//v1///chat//completions//', 'chat', 'POST'],
    ['/v1/models', 'models', 'GET'],
    ['/models/', 'models', 'GET'],
    ['/metrics', 'metrics', 'GET'],
    ['/healthz', 'healthz', 'GET'],
    ['/readyz/', 'readyz', 'GET'],
  ])('finds %s', (path, name, method) => {
    expect(resolveEndpoint(path)?.endpoint).toMatchObject({ name, method });
  });

  it.each([
    ['/v1/models/gpt', 'gpt'],
    ['/models/gpt', 'gpt'],
    ['/v1/models/org/gpt', 'org/gpt'],
    ['/v1/models/org%2Fgpt', 'org/gpt'],
    ['/v1/models/a%20b', 'a b'],
    ['/v1/models/100%', '100%'],
    ['/v1/models/%C3%BC', 'ü'],
  ])('finds the model of %s', (path, modelId) => {
    expect(resolveEndpoint(path)).toMatchObject({ endpoint: { name: 'model' }, modelId });
  });

  it.each([
    '',
    '/',
    '/v1',
    '/v1/chat',
    '/v1/chat/completions/x',
    '/V1/models',
    '/v2/models',
    '/v1/metrics',
    '/constructor',
  ])('knows no %j', (path) => {
    expect(resolveEndpoint(path)).toBeUndefined();
  });

  it('answers only health and metrics while draining', () => {
    const operational = [
      '/metrics',
      '/healthz',
      '/readyz',
      '/models',
      '/chat/completions',
      '/models/x',
    ].filter((path) => resolveEndpoint(path)?.endpoint.operational);
    expect(operational).toEqual(['/metrics', '/healthz', '/readyz']);
  });

  it('never throws, and doubled or trailing slashes change nothing', () => {
    fc.assert(
      fc.property(
        fc.string(),
        fc.constantFrom('/models/', '/v1/models/', '/', '/chat/completions'),
        (text, prefix) => {
          const path = prefix + text;
          expect(resolveEndpoint(path.replaceAll('/', '//'))).toEqual(
            resolveEndpoint(path.replaceAll(/\/+/g, '/')),
          );
        },
      ),
    );
  });
});
