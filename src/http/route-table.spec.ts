import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { IMPLICIT_ROUTE, type RouteConfig } from '../config/access-config.js';
import { RouteTable } from './route-table.js';

const table = new RouteTable([IMPLICIT_ROUTE]);
const resolveEndpoint = (path: string) => table.resolve(path);

describe('RouteTable with the one route that there is without `routes`', () => {
  it.each([
    ['/v1/chat/completions', 'operation', 'POST'],
    ['/chat/completions', 'operation', 'POST'],
    ['/v1/chat/completions/', 'operation', 'POST'],
    ['//v1///chat//completions//', 'operation', 'POST'],
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
    ['/v1/models/tr/', 'tr', 'tr/'],
    ['/models/tr%2F', 'tr/', 'tr/'],
    ['/v1/models/a//b', 'a/b', 'a//b'],
    ['/v1/v1/models/tr/', 'tr', 'tr/'],
    ['//v1/models/tr/', 'tr', 'tr/'],
    ['/v1//models/tr/', 'tr', 'tr/'],
    ['//v1///v1//models/a//b%2F', 'a/b/', 'a//b/'],
    ['/v1/models//tr', 'tr', '/tr'],
    ['/v1/models/tr', 'tr', 'tr'],
  ])('tells the id of %s with its slashes in order, and as it stands', (path, modelId, verbatimId) => {
    expect(resolveEndpoint(path)).toMatchObject({ endpoint: { name: 'model' }, modelId, verbatimId });
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
          const doubled = resolveEndpoint(path.replaceAll('/', '//'));
          const tidy = resolveEndpoint(path.replaceAll(/\/+/g, '/'));
          expect([doubled?.endpoint, doubled?.modelId]).toEqual([tidy?.endpoint, tidy?.modelId]);
        },
      ),
    );
  });
});

const route = (id: string, path: string, more: Partial<RouteConfig> = {}): RouteConfig => ({
  ...IMPLICIT_ROUTE,
  id,
  path,
  ...more,
});
const leadsTo = (routes: readonly RouteConfig[], path: string): string => {
  const found = new RouteTable(routes).resolve(path);
  if (found === undefined) return '404';
  const { endpoint, modelId } = found;
  const what = endpoint.operation?.name ?? endpoint.name;
  return `${found.route?.id ?? '-'} ${what}${modelId === '' ? '' : ` ${modelId}`}`;
};

describe('every operation', () => {
  it.each([
    ['chat/completions', 'chat'],
    ['completions', 'completions'],
    ['responses', 'responses'],
    ['messages', 'messages'],
    ['messages/count_tokens', 'count_tokens'],
    ['embeddings', 'embeddings'],
    ['images/generations', 'images'],
    ['rerank', 'rerank'],
    ['audio/speech', 'speech'],
    ['audio/transcriptions', 'transcription'],
    ['audio/translations', 'translation'],
  ])('%s', (path, name) => {
    for (const prefix of ['/v1/', '/', '/v1/v1/', '//v1//'])
      expect(leadsTo([IMPLICIT_ROUTE], prefix + path)).toBe(`default ${name}`);
    expect(leadsTo([IMPLICIT_ROUTE], `/v1/v1/v1/${path}`)).toBe('404');
    expect(leadsTo([IMPLICIT_ROUTE], `/v2/${path}`)).toBe('404');
  });
});

describe('routes', () => {
  const routes = [
    route('v1', '/v1'),
    route('team', '/team'),
    route('deep', '/team/v1'),
    route('inner', '/v1/team'),
    route('off', '/off', { disabled: true }),
    route('off-inner', '/team/off', { disabled: true }),
  ];

  it.each([
    ['/v1/chat/completions', 'v1 chat'],
    ['/chat/completions', 'v1 chat'],
    ['/v1/v1/chat/completions', 'v1 chat'],
    ['/team/chat/completions', 'team chat'],
    // The longest path wins, whatever its place in the file.
    ['/team/v1/chat/completions', 'deep chat'],
    ['/team/v1/v1/chat/completions', 'deep chat'],
    ['/v1/team/chat/completions', 'inner chat'],
    ['/v1/team/v1/messages', 'inner messages'],
    ['/v1/teams/chat/completions', '404'],
    ['/teams/chat/completions', '404'],
    ['/Team/chat/completions', '404'],
    ['/%74eam/chat/completions', '404'],
    ['/team', '404'],
    ['/team/v1', '404'],
    ['/team/nothing', '404'],
    // No fallback to a shorter one.
    ['/off/chat/completions', '404'],
    ['/team/off/chat/completions', '404'],
    ['//team///models//', 'team models'],
    ['/team/models/org/m', 'team model org/m'],
    ['/team/v1/models/a%2Fb', 'deep model a/b'],
    ['/models/x', 'v1 model x'],
    ['/metrics', '- metrics'],
    ['/team/metrics', '404'],
    ['/v1/../team/chat/completions', '404'],
    ['/v1/./chat/completions', '404'],
    ['/v1/%2e%2E/team/chat/completions', '404'],
    ['/v1/.%2e/chat/completions', '404'],
    ['/%2e/v1/chat/completions', '404'],
    ['/v1/models/..', '404'],
    ['/v1/models/../../metrics', '404'],
    ['/v1/models/...', 'v1 model ...'],
  ])('%s leads to %s', (path, expected) => {
    expect(leadsTo(routes, path)).toBe(expected);
    expect(leadsTo(routes.toReversed(), path)).toBe(expected);
  });

  it('has no way without the prefix where no route is at /v1', () => {
    expect(leadsTo([route('team', '/team')], '/chat/completions')).toBe('404');
    expect(leadsTo([route('team', '/team')], '/v1/chat/completions')).toBe('404');
    expect(leadsTo([route('v1', '/v1', { disabled: true })], '/chat/completions')).toBe('404');
  });

  it('may be one at the root, which then takes what no other does', () => {
    const both = [route('root', '/'), route('v1', '/v1')];
    expect(leadsTo(both, '/chat/completions')).toBe('root chat');
    expect(leadsTo(both, '/v1/chat/completions')).toBe('v1 chat');
    expect(leadsTo([route('root', '/')], '/v1/chat/completions')).toBe('root chat');
  });

  it('gives what lies at the path of a longer route to that route, also where it has nothing there', () => {
    const shadowing = [route('v1', '/v1'), route('odd', '/v1/messages/count_tokens')];
    expect(leadsTo(shadowing, '/v1/messages/count_tokens/chat/completions')).toBe('odd chat');
    expect(leadsTo(shadowing, '/v1/messages')).toBe('v1 messages');
  });

  it('agrees with a naive reading of the same rules', () => {
    const segment = fc.constantFrom(
      'v1',
      'team',
      'a',
      'chat',
      'completions',
      'models',
      'messages',
      '',
      '.',
      '%2e%2E',
    );
    const path = fc.array(segment, { maxLength: 6 }).map((segments) => `/${segments.join('/')}`);
    const some = fc.uniqueArray(fc.constantFrom('/v1', '/team', '/team/a', '/v1/team', '/a/v1', '/'), {
      minLength: 1,
    });
    fc.assert(
      fc.property(some, path, (paths, asked) => {
        expect(
          leadsTo(
            paths.map((one) => route(one, one)),
            asked,
          ),
        ).toBe(naive(paths, asked));
      }),
      { numRuns: 3000 },
    );
  });
});

function naive(paths: readonly string[], asked: string): string {
  const segments = asked.split('/').filter((one) => one !== '');
  if (segments.some((one) => ['.', '..'].includes(one.replace(/%2e/gi, '.')))) return '404';
  const fits = paths
    .map((one) => ({ one, own: one.split('/').filter((part) => part !== '') }))
    .filter(({ own }) => own.every((part, i) => segments[i] === part) && own.length < segments.length)
    .toSorted((a, b) => b.own.length - a.own.length);
  const best = fits[0] ?? (paths.includes('/v1') ? { one: '/v1', own: [] } : undefined);
  if (best === undefined) return '404';
  let rest = segments.slice(best.own.length);
  for (let tries = 0; tries < 2; tries++) {
    const joined = rest.join('/');
    if (joined === 'chat/completions') return `${best.one} chat`;
    if (joined === 'completions' || joined === 'messages' || joined === 'models')
      return `${best.one} ${joined}`;
    if (rest[0] === 'models') return `${best.one} model ${rest.slice(1).join('/')}`;
    if (rest[0] !== 'v1') return '404';
    rest = rest.slice(1);
  }
  return '404';
}
