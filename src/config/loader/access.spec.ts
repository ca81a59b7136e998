import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { file, load, type Variables } from '../../../test/support/small-config.js';
import { formatProblem } from './config-problem.js';
import { loadConfig } from './load-config.js';

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');
const TOKEN = 'metrics_token: secret-of-the-metrics';
const closed = (consumers: string, more = ''): string =>
  file({ server: TOKEN, end: `consumers: ${consumers}\n${more}` });

function problemsOf(text: string, environment: Variables = {}): string[] {
  const result = loadConfig({ text }, environment);
  if (result.ok) throw new Error('the file was taken');
  return result.problems.map(formatProblem);
}
const warningsOf = (text: string): string[] => load(text).warnings;

describe('consumers', () => {
  it('are absent = open, empty = closed, null = refused', () => {
    expect(load(file({})).config.consumers).toBeNull();
    const { config, warnings } = load(closed('[]'));
    expect(config.consumers).toEqual([]);
    expect(warnings).toEqual([
      'consumers (line 5): there is no consumer, so every request is answered with 401',
    ]);
    for (const nothing of ['null', '~', ''])
      expect(problemsOf(closed(nothing))).toEqual([
        expect.stringContaining('consumers (line 5): has no value'),
      ]);
  });

  it('keep the hash of a key, however it is given', () => {
    const { config } = load(
      closed('[{ id: a, keys: [{ id: one, value: " ${KEY}\\n" }, { id: two, sha256: "' + sha256('x').toUpperCase() + '" }] }]'), // prettier-ignore
      { KEY: 'clear-key-1' },
    );
    expect(config.consumers?.[0]?.keys.map(({ digest }) => digest)).toEqual([
      sha256('clear-key-1'),
      sha256('x'),
    ]);
    expect(JSON.stringify(config)).not.toContain('clear-key-1');
  });

  it('have defaults, and labels of the caller', () => {
    const { config } = load(
      closed(
        '[{ id: a, labels: { team: red, env: dev }, keys: [{ id: k, value: v, labels: { env: prod } }] }]',
      ),
    );
    const consumer = config.consumers?.[0];
    expect(consumer).toMatchObject({
      id: 'a',
      disabled: false,
      direct: false,
      limit: Infinity,
      priority: 0,
      select: { routes: null, models: null, upstreams: null },
    });
    expect(consumer?.keys[0]).toMatchObject({ disabled: false, expiresAtMs: Infinity });
    expect(Object.fromEntries(consumer?.keys[0]?.labels ?? [])).toEqual({
      team: 'red', env: 'prod', 'sys/consumer': 'a', 'sys/key': 'k',
    }); // prettier-ignore
  });

  it.each([
    ['[{ keys: [] }]', 'consumers[0].id (line 5): the required key "id" is missing'],
    ['[{ id: a, keys: [{ id: k }] }]', 'consumers[0].keys[0] (line 5): needs "sha256"'],
    ['[{ id: a, keys: [{ id: k, value: null, sha256: null }] }]', 'needs "sha256"'],
    [`[{ id: a, keys: [{ id: k, value: x, sha256: ${sha256('x')} }] }]`, 'has both "sha256" and "value"'],
    ['[{ id: a, keys: [{ id: k, sha256: abc }] }]', 'consumers[0].keys[0].sha256 (line 5): must be the SHA-256'],
    ['[{ id: a, keys: [{ id: k, value: "" }] }]', 'consumers[0].keys[0].value (line 5): is empty'],
    ['[{ id: a, keys: [{ id: k, value: "${EMPTY:-}" }] }]', 'is empty'],
    ['[{ id: a, keys: [{ id: k, value: "${UNSET}" }] }]', 'the environment variable UNSET is not set'],
    ['[{ id: a, keys: [{ id: k, value: "a,b" }] }]', 'holds a comma or a space'],
    ['[{ id: a, keys: [{ id: k, value: x }, { id: k, value: y }] }]', 'consumers[0].keys[1].id (line 5): "k" is already'],
    ['[{ id: a, keys: [{ id: k, value: x }, { id: l, value: x }] }]', 'consumers[0].keys[1] (line 5): is the same key as keys[0] of consumers[0]'],
    [`[{ id: a, keys: [{ id: k, value: x }] }, { id: b, keys: [{ id: k, sha256: ${sha256('x').toUpperCase()} }] }]`, 'consumers[1].keys[0] (line 5): is the same key'],
    ['[{ id: a }, { id: a }]', 'consumers[1].id (line 5): "a" is already the id of consumers[0] (line 5)'],
    ['[{ id: a, keys: [{ id: k, value: x, expires: 2027-02-30 }] }]', '"2027-02-30" is no date'],
    ['[{ id: a, keys: [{ id: k, value: x, expires: 1893456000 }] }]', 'must be a text, not a number'],
    ['[{ id: a, priority: 1001 }]', 'consumers[0].priority (line 5): must be a whole number from -1000 to 1000'],
    ['[{ id: a, priority: 1.5 }]', 'consumers[0].priority'],
    ['[{ id: a, max_concurrency: -1 }]', 'consumers[0].max_concurrency'],
    ['[{ id: a, labels: { sys/team: x } }]', 'consumers[0].labels["sys/team"] (line 5): labels that begin with "sys/" are built in'],
    ['[{ id: a, labels: { "a b": x } }]', '"a b" is no label'],
    ['[{ id: a, labels: { a: 3 } }]', 'consumers[0].labels.a (line 5): must be a text, not a number; quote it'],
    ['[{ id: a, select: { models: 3 } }]', 'consumers[0].select.models (line 5): must be a text'],
    ['[{ id: a, select: { models: [a] } }]', 'a selector is one quoted text'],
    ['[{ id: a, select: { models: "a in (b" } }]', 'consumers[0].select.models (line 5): is no label selector: position 8'],
    ['[{ id: a, select: { consumers: a } }]', 'unknown key "consumers"'],
    ['[{ id: a, quotas: 3 }]', 'unknown key "quotas"'],
  ])('%s: %s', (consumers, problem) => {
    expect(problemsOf(closed(consumers))).toEqual([expect.stringContaining(problem)]);
  }); // prettier-ignore

  it('never shows a key that is refused', () => {
    for (const text of problemsOf(
      closed('[{ id: a, keys: [{ id: k, value: "two words-of-a-key" }, { id: l, value: "q,r-of-a-key" }] }]'),
    ))
      expect(text).not.toMatch(/words|q,r/);
  });

  describe('a token or key with a character that no header carries safely', () => {
    const place = {
      'server.metrics_token': (value: string) => file({ server: `metrics_token: ${value}` }),
      'server.admin_token': (value: string) => file({ server: `admin_token: ${value}` }),
      'consumers[0].keys[0].value': (value: string) =>
        closed(`[{ id: a, keys: [{ id: k, value: ${value} }] }]`),
    };
    it.each(Object.entries(place))('%s is refused, and never shown', (path, text) => {
      for (const value of ['"schlüssel-1"', '"key\\u00a0"', '"\\ufeffkey"', '"ключ"', '"key\\u0080"']) {
        const [problem, ...more] = problemsOf(text(value));
        expect(problem).toContain(path);
        expect(problem).toMatch(/: holds a character beyond ASCII, which no header carries safely$/);
        expect(more).toEqual([]);
      }
      for (const value of ['"key\\u0007x"', '"key\\u007f"', '"a\\u0000b"'])
        expect(problemsOf(text(value))[0]).toMatch(/: holds a character that no HTTP header can carry$/);
      expect(problemsOf(text('"${KEY}"'), { KEY: 'schlüssel-1' })).toHaveLength(1);
      expect(load(text('"~!#$%&*+-./^_|"')).config).toBeDefined();
    });
  });

  it('warns where /metrics would tell their names to everybody', () => {
    const text = file({ end: 'consumers: [{ id: a, keys: [{ id: k, value: x }] }]' });
    expect(warningsOf(text)).toEqual([expect.stringContaining('set server.metrics_token')]);
  });

  it('warns of one secret for two purposes, and never shows it', () => {
    const server = (admin: string): string => `metrics_token: token-of-metrics, admin_token: ${admin}`;
    const text = (admin: string, key: string): string =>
      file({
        server: server(admin),
        end: `consumers: [{ id: a, keys: [{ id: k, value: x }, { id: l, ${key} }] }]`,
      });
    expect(warningsOf(text('token-of-admins', 'value: y'))).toEqual([]);
    expect(warningsOf(text('" token-of-metrics "', 'value: y'))).toEqual([
      expect.stringMatching(
        /^server\.admin_token \(line \d+\): is the same as server\.metrics_token: whoever/,
      ),
    ]);
    for (const key of ['value: token-of-admins', `sha256: ${sha256('token-of-admins').toUpperCase()}`])
      expect(warningsOf(text('token-of-admins', key))).toEqual([
        expect.stringMatching(
          /^consumers\[0\]\.keys\[1\] \(line \d+\): is the same key as server\.admin_token,/,
        ),
      ]);
    const [shown] = warningsOf(text('token-of-admins', 'value: token-of-metrics'));
    expect(shown).toContain('is the same key as server.metrics_token');
    expect(shown).not.toContain('token-of');
    // Also in an open service.
    const open = file({ server: server('token-of-metrics') });
    expect(warningsOf(open)).toEqual([expect.stringContaining('is the same as server.metrics_token')]);
  });

  it('warns of a consumer that metrics could not tell from the rest', () => {
    expect(warningsOf(closed('[{ id: other, keys: [{ id: k, value: x }] }]'))).toEqual([
      'consumers[0].id (line 5): "other" also stands in metrics for all consumers beyond server.metrics_consumers; choose another id',
    ]);
  });

  it('warns of a consumer that nobody can be', () => {
    expect(warningsOf(closed('[{ id: a }]'))).toEqual([
      expect.stringContaining('the consumer "a" has no key'),
    ]);
  });
});

describe('routes', () => {
  const routes = (text: string): string => file({ end: `routes: ${text}` });

  it('are one at /v1 without the key', () => {
    expect(load(file({})).config.routes.map(({ id, path, maxAttempts }) => [id, path, maxAttempts])).toEqual([
      ['default', '/v1', Infinity],
    ]);
  });

  it('have defaults, one form of path, and entries in short and long form', () => {
    const { config } = load(routes('[{ id: r, path: //team//v1/, upstreams: [u], labels: { kind: chat } }, { id: s, path: /, upstreams: [{ upstream: u, weight: 3 }], max_attempts: 5 }]')); // prettier-ignore
    expect(config.routes).toMatchObject([
      { id: 'r', path: '/team/v1', disabled: false, maxAttempts: 2, upstreams: [{ upstream: 'u', priority: 1, weight: null }] },
      { id: 's', path: '/', maxAttempts: 5, upstreams: [{ upstream: 'u', priority: 1, weight: 3 }] },
    ]); // prettier-ignore
    expect([...(config.routes[0]?.labels ?? [])]).toEqual([['kind', 'chat'], ['sys/route', 'r']]); // prettier-ignore
  });

  it.each([
    ['null', 'routes (line 5): has no value'],
    ['[]', 'must hold at least one route'],
    ['[{ path: /a }]', 'routes[0].id (line 5): the required key "id" is missing'],
    ['[{ id: r }]', 'routes[0].path (line 5): the required key "path" is missing'],
    ['[{ id: r, path: v1 }]', 'routes[0].path (line 5): "v1" must begin with "/"'],
    ['[{ id: r, path: /a }, { id: s, path: /a/ }]', 'routes[1].path (line 5): "/a" is already the path of routes[0]'],
    ['[{ id: r, path: /a }, { id: r, path: /b }]', 'routes[1].id (line 5): "r" is already the id of routes[0]'],
    ['[{ id: r, path: /v1/chat }]', 'ends in "chat"'],
    ['[{ id: r, path: /models/ }]', 'ends in "models"'],
    ['[{ id: r, path: //admin }]', 'at or below /admin'],
    ['[{ id: r, path: /console/x }]', 'at or below /console'],
    ['[{ id: r, path: /metrics }]', 'at or below /metrics'],
    ['[{ id: r, path: /healthz/a/b }]', 'at or below /healthz'],
    ['[{ id: r, path: /readyz }]', 'at or below /readyz'],
    ['[{ id: r, path: /a/../b }]', '"." or ".." segment'],
    ['[{ id: r, path: /a/.%2E/b }]', '"." or ".." segment'],
    ['[{ id: r, path: "/a b" }]', 'no path can'],
    ['[{ id: r, path: "/a?b" }]', 'no path can'],
    ['[{ id: r, path: /ä }]', 'no path can'],
    ['[{ id: r, path: /a, upstreams: [] }]', 'routes[0].upstreams (line 5): must hold at least one'],
    ['[{ id: r, path: /a, upstreams: [x] }]', 'routes[0].upstreams[0] (line 5): no upstream has the id "x"'],
    ['[{ id: r, path: /a, upstreams: [u, { upstream: u }] }]', 'routes[0].upstreams[1].upstream (line 5): the upstream "u" stands twice'],
    ['[{ id: r, path: /a, upstreams: [{ upstream: u, weight: 0 }] }]', 'routes[0].upstreams[0].weight (line 5): must be a whole number ≥ 1'],
    ['[{ id: r, path: /a, upstreams: [{ upstream: u, priority: 1.5 }] }]', 'must be a whole number, not 1.5'],
    ['[{ id: r, path: /a, max_attempts: 0 }]', 'routes[0].max_attempts (line 5): must be a whole number ≥ 1'],
    ['[{ id: r, path: /a, max_attempt: 3 }]', 'did you mean "max_attempts"'],
    ['[{ id: r, path: /a, select: { routes: a } }]', 'unknown key "routes"'],
  ])('%s: %s', (text, problem) => {
    expect(problemsOf(routes(text))).toEqual([expect.stringContaining(problem)]);
  }); // prettier-ignore

  it.each(['/adminx', '/v1/admin', '/metricsx', '/chats', '/chat/v1', '/%41', '/-3'])(
    '%s is a path',
    (path) => {
      expect(load(routes(`[{ id: r, path: "${path}" }]`)).config.routes[0]?.path).toBe(path);
    },
  );

  it('takes any whole number as a priority, a negative one too', () => {
    const { config } = load(routes('[{ id: r, path: /a, upstreams: [{ upstream: u, priority: -3 }] }]'));
    expect(config.routes[0]?.upstreams?.[0]?.priority).toBe(-3);
  });
});

describe('a selector of consumers', () => {
  const routes = [
    'routes:',
    '  - { id: default, path: /v1 }',
    '  - id: paid',
    '    path: /paid/v1',
    '    select:',
    '      models: "sys/model=m"',
    '      consumers: "team=search"',
  ].join('\n');

  it('is told where there are none: the route is open', () => {
    expect(warningsOf(file({ end: routes }))).toEqual([
      'routes[1].select.consumers (line 11): has no effect, since there are no "consumers": everybody may use this route',
    ]);
  });

  it('is as it should be where there are some', () => {
    const consumers = 'consumers: [{ id: a, labels: { team: search }, keys: [{ id: k, value: x }] }]';
    expect(warningsOf(file({ server: TOKEN, end: `${routes}\n${consumers}` }))).toEqual([]);
  });
});

describe('labels and selectors', () => {
  it('gives an upstream the labels of its provider, its own, and the built-in ones', () => {
    const { config } = load(
      file({ p: 'labels: { region: eu, tier: gold }, protocol: messages', u: 'labels: { tier: free }' }),
    );
    expect(Object.fromEntries(config.upstreams[0]?.labels ?? [])).toEqual({
      region: 'eu', tier: 'free', 'sys/provider': 'p', 'sys/upstream': 'u', 'sys/protocol': 'messages', 'sys/model': 'r',
    }); // prettier-ignore
    expect(Object.fromEntries(load(file({ m: 'labels: { a: b }' })).config.models[0]?.labels ?? [])).toEqual({
      a: 'b', 'sys/model': 'm',
    }); // prettier-ignore
  });

  it('warns once of each label that nobody carries', () => {
    const text = file({
      server: TOKEN,
      p: 'labels: { region: eu }',
      m: 'labels: { preview: "yes" }',
      end: `consumers:
  - { id: a, keys: [{ id: k, value: x, select: { upstreams: "regoin in (eu)" } }], select: { models: "!preveiw" } }
  - { id: b, keys: [{ id: k, value: y }], select: { models: "!preveiw, sys/model, !preview", routes: sys/route } }
routes: [{ id: r, path: /v1, select: { consumers: "team, sys/key=k", upstreams: "sys/provider, region" } }]`,
    });
    const told = warningsOf(text).map((line) => line.replace(/ \(line.*?\)/, ''));
    expect(told.toSorted()).toEqual([
      'consumers[0].keys[0].select.upstreams: none of the upstreams carries the label "regoin"; did you mean "region"?',
      'consumers[0].select.models: none of the models carries the label "preveiw"; did you mean "preview"?',
      'routes[0].select.consumers: none of the consumers carries the label "team"',
    ]);
  });

  it.each([
    '!preview',
    '! preview',
    '!in (a)',
    '!!set {a}',
    '!<tag:x.y,2000:z> a',
    '!foo {a: b}',
    '!preview, team=x',
    '!a, !b',
    '!a,b=c',
  ])('refuses the unquoted %s as a tag, with the hint to quote it', (written) => {
    const text = closed(`\n  - id: a\n    select:\n      models: ${written}`);
    expect(problemsOf(text)).toEqual([
      expect.stringMatching(/^consumers\[0\]\.select\.models \(line 8\): .*YAML tag.*quote it/),
    ]);
  });

  it('refuses a tag anywhere, also in a patch and on a key', () => {
    expect(problemsOf(file({ p: 'patch: { a: !x y }' }))[0]).toContain(
      'providers[0].patch.a (line 2): a value that begins',
    );
    expect(problemsOf(file({ p: 'patch: { !x a: y }' }))[0]).toContain('YAML tag');
    expect(load(file({ p: 'patch: { a: !!str 5 }' })).config.providers[0]?.patch).toEqual({ a: '5' });
  });
});

describe('protocols and capabilities', () => {
  it.each([
    ['', '', ['chat-completions']],
    ['protocol: messages', '', ['messages']],
    ['protocol: messages', 'protocol: [chat-completions, messages]', ['chat-completions', 'messages']],
  ])('provider {%s}, upstream {%s}', (p, u, protocols) => {
    expect(load(file({ p, u })).config.upstreams[0]?.protocols).toEqual(protocols);
  });

  it.each([
    [{ p: 'protocol: anthropic' }, 'providers[0].protocol (line 2): "anthropic" is no protocol; write one of chat-completions, responses'],
    [{ u: 'protocol: [messages, x]' }, 'upstreams[0].protocol[1] (line 3): "x" is no protocol'],
    [{ u: 'protocol: []' }, 'must hold at least one protocol'],
    [{ u: 'protocol: [messages, messages]' }, 'stands twice'],
    [{ u: 'serves: [embedding]' }, 'upstreams[0].serves[0] (line 3): "embedding" is no capability'],
    [{ u: 'serves: chat' }, 'must be a list'],
    [{ u: 'serves: []' }, 'must hold at least one'],
    [{ p: 'auth: basic' }, 'providers[0].auth (line 2): "basic" is no place for a key'],
    [{ p: 'serves: [chat]' }, 'unknown key "serves" in providers[]; it belongs to upstreams[]'],
    [{ u: 'disabled: "yes"' }, 'must be true or false'],
  ])('%j: %s', (parts, problem) => {
    expect(problemsOf(file(parts))).toEqual([expect.stringContaining(problem)]);
  }); // prettier-ignore

  it('disables an upstream with its provider', () => {
    expect(load(file({ p: 'disabled: true' })).config.upstreams[0]?.disabled).toBe(true);
    expect(load(file({ u: 'disabled: true' })).config.upstreams[0]?.disabled).toBe(true);
    expect(load(file({ m: 'disabled: true' })).config.models[0]?.disabled).toBe(true);
  });

  it('warns where what is for chat only is set elsewhere', () => {
    const warnings = warningsOf(file({ p: 'protocol: messages, think_tags: split, reasoning_field: r' }));
    expect(warnings).toEqual([
      expect.stringContaining('upstreams[0] (line 3): think_tags is set, but works only for chat requests'),
      expect.stringContaining('reasoning_field is set'),
    ]);
    expect(warningsOf(file({ p: 'think_tags: split', u: 'serves: [embeddings]' }))).toHaveLength(1);
    expect(warningsOf(file({ p: 'think_tags: split', u: 'protocol: [messages, chat-completions]' }))).toEqual(
      [],
    );
    expect(warningsOf(file({ p: 'think_tags: split', u: 'protocol: messages, think_tags: off' }))).toEqual(
      [],
    );
  });
});

describe('a selector without a value', () => {
  const key = "{ id: k, sha256: '" + sha256('k') + "'";
  it.each([
    [`[{ id: c, keys: [${key} }], select: }]`, 'consumers[0].select (line 5): has no value'],
    [
      `[{ id: c, keys: [${key} }], select: { models: } }]`,
      'consumers[0].select.models (line 5): has no value',
    ],
    [
      `[{ id: c, keys: [${key}, select: { upstreams: ~ } }] }]`,
      'consumers[0].keys[0].select.upstreams (line 5): has no value',
    ],
  ])('is refused, since it would open everything: %s', (consumers, problem) => {
    expect(problemsOf(closed(consumers))).toEqual([expect.stringContaining(problem)]);
  });

  it('is refused on a route too', () => {
    const routes = 'routes: [{ id: r, path: /v1, select: { consumers: null } }]';
    expect(problemsOf(file({ end: routes }))).toEqual([
      expect.stringContaining('routes[0].select.consumers (line 5): has no value'),
    ]);
  });
});
