import 'reflect-metadata';
import { describe, expect, it } from 'vitest';
import { changed } from '../../../test/support/one-mistake.js';

describe('loadConfig on a file with one wrong value', () => {
  const url = '"http://127.0.0.1:9/v1"';
  const key = 'key: sk-abcdefgh1234';
  const cases: [from: string, to: string, problem: string][] = [
    // numbers
    [
      'model: real',
      'model: r\n    max_concurrency: four',
      'upstreams[0].max_concurrency (line 11): must be a whole number ≥ 0 (0 or null = unlimited), not "four"',
    ],
    ['model: real', 'model: r\n    max_concurrency: -1', 'not -1'],
    ['model: real', 'model: r\n    max_concurrency: 1.5', 'not 1.5'],
    ['model: real', 'model: r\n    max_concurrency: "4"', 'not "4"; remove the quotes'],
    ['model: real', 'model: r\n    max_concurrency: 99999999999999999999', 'not 99999999999999999999'],
    [
      'port: 8100',
      'port: 65536',
      'server.port (line 2): must be a whole number from 0 (any free port) to 65535, not 65536',
    ],
    ['port: 8100', 'port: "8100"', 'not "8100"; remove the quotes'],
    [
      'port: 8100',
      'body_limit: 64XB',
      'server.body_limit (line 2): must be a size such as 64MiB, 512KiB, 10MB or 1000000, not "64XB"',
    ],
    ['port: 8100', 'body_limit: 0', 'server.body_limit (line 2): must be more than 0'],
    ['port: 8100', 'body_limit: 2GiB', 'server.body_limit (line 2): must be at most 1GiB, not "2GiB"'],
    ['port: 8100', 'body_limit: -5', 'not -5'],
    ['port: 8100', 'host: "a b"', 'server.host (line 2): must be a host name or an address'],
    ['port: 8100', 'cors: "*"', 'server.cors (line 2): must be a list of origins, not "*"'],
    [
      'port: 8100',
      'cors: ["https://a.b/"]',
      'server.cors[0] (line 2): "https://a.b/" is more than an origin; write "https://a.b"',
    ],
    ['port: 8100', 'cors: ["https://a.b:443"]', 'write "https://a.b"'],
    ['port: 8100', 'cors: [a.b]', 'server.cors[0] (line 2): "a.b" is no origin'],
    [
      key,
      'reasoning_empty_ok: yes',
      'providers[0].reasoning_empty_ok (line 6): must be true or false, not "yes" (YAML 1.2',
    ],
    // url
    [url, 'ftp://h/v1', 'providers[0].url (line 5): the scheme must be http or https, not ftp'],
    [url, 'localhost:8080/v1', 'is not an absolute url; write it like "https://host/v1"'],
    [url, '"http://h/v1?a=b"', 'must not have a query'],
    [url, '"http://h/v1?"', 'must not have a query'],
    [url, '"http://h/v1#x"', 'must not have a fragment'],
    [url, '"http://h\\\\@evil/v1"', 'holds a space, a backslash or a control character'],
    [url, '"http://"', 'has no valid host'],
    [url, '"http:///v1"', 'has no valid host'],
    [url, '"http://h:99999/"', 'has no valid host'],
    [url, '"http://a\\nb/"', 'control character'],
    [url, '""', 'is empty; write it like'],
    // headers, keys
    [key, 'headers: { "x y": a }', 'providers[0].headers["x y"] (line 6): "x y" is no valid header name'],
    [key, 'headers: { x-a: 1 }', 'providers[0].headers.x-a (line 6): must be a text, not a number; quote it'],
    [key, 'headers: { x-a: }', 'providers[0].headers.x-a (line 6): has no value'],
    [key, 'headers: { x-a: "a\\nb" }', 'the value holds a line feed'],
    [key, 'headers: { x-a: "\\0" }', 'a character that no HTTP header can carry'],
    [key, 'headers: { x-a: "привет" }', 'a character that no HTTP header can carry'],
    [key, 'headers: { Host: a }', 'the header "Host" is made by the proxy itself'],
    [key, 'headers: { Content-Length: "1" }', 'made by the proxy itself'],
    [key, 'headers: { X-A: a, x-a: b }', 'providers[0].headers.x-a (line 6): is the same header as "X-A"'],
    [
      key,
      'headers: [a]',
      'providers[0].headers (line 6): must be a mapping of header names to texts, not a list',
    ],
    [key, 'session_header: "x y"', 'providers[0].session_header (line 6): "x y" is no valid header name'],
    [key, 'session_header: transfer-encoding', 'made by the proxy itself'],
    [key, 'session_header: authorization', 'cannot carry a session id'],
    [key, 'key: "a\\nb"', 'providers[0].key (line 6): holds a line feed'],
    [key, 'key: 12345678', 'providers[0].key (line 6): must be a text, not a number; quote it'],
    [key, 'key: "${NOT_SET}"', 'providers[0].key (line 6): the environment variable NOT_SET is not set'],
    [key, 'key: "${NOT_SET"', 'providers[0].key (line 6): "${" is not closed by "}"'],
    [
      key,
      'headers: { x-a: "${constructor}" }',
      'providers[0].headers.x-a (line 6): the environment variable constructor is not set',
    ],
    [url, '"http://${NOT_SET}/"', 'providers[0].url (line 5): the environment variable NOT_SET is not set'],
    // patches, plugins
    [key, 'patch: [1]', 'providers[0].patch (line 6): must be a mapping, not a list'],
    [key, 'patch: { a: [1, { b: .nan }] }', 'providers[0].patch.a[1].b (line 6): NaN is no JSON number'],
    [key, 'patch: { a: -.inf }', 'providers[0].patch.a (line 6): -Infinity is no JSON number'],
    [key, 'patch: { a: 1e999 }', 'providers[0].patch.a (line 6): Infinity is no JSON number'],
    [
      'models:',
      'plugins: [{ module: 1 }]\nmodels:',
      'plugins[0].module (line 11): must be a text, not 1; quote it',
    ],
    [
      'models:',
      'plugins: [./a.js]\nmodels:',
      'plugins[0] (line 11): must be a mapping (one plugin), not a text',
    ],
    [
      'models:',
      'plugins: [{ module: a, config: 1 }]\nmodels:',
      'plugins[0].config (line 11): must be a mapping, not a number',
    ],
    [
      'models:',
      'disable: think-tags\nmodels:',
      'disable (line 11): must be a list of ids of built-in interceptors, not a text',
    ],
  ];

  it.each(cases)('%j → %j', (from, to, problem) => {
    const lines = changed(from, to);
    expect(lines.filter((line) => line.includes(problem))).toHaveLength(1);
    expect(lines.join('\n')).not.toContain('undefined');
  });
});
