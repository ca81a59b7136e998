import 'reflect-metadata';
import { describe, expect, it } from 'vitest';
import { file, load } from '../../../test/support/small-config.js';
import { formatProblem } from './config-problem.js';
import { loadConfig } from './load-config.js';

const TOKEN = 'metrics_token: some-token-1234';
const CALLER = 'consumers: [{ id: c, direct: true, keys: [{ id: k, value: caller-key-1 }] }]';

describe('warnings of what nobody can reach', () => {
  it.each([
    ['direct, where the service has none', file({ server: TOKEN, end: CALLER }), 'consumers[0].direct (line 5): has no effect without server.direct: true'],
    ['a default that is disabled', file({ m: 'disabled: true', end: 'default_model: m' }), 'default_model (line 5): the model "m" is disabled, so a request for an unknown model is answered with 404'],
    ['a default whose upstream is disabled', file({ u: 'disabled: true', end: 'default_model: m' }), 'default_model (line 5): the model "m" has no upstream that is not disabled, so a request for an unknown model is answered with 404'],
    ['a default whose provider is disabled', file({ p: 'disabled: true', end: 'default_model: m' }), 'default_model (line 5): the model "m" has no upstream that is not disabled, so a request for an unknown model is answered with 404'],
    ['a route to upstreams of no model', file({ end: 'routes: [{ id: r, path: /v1, upstreams: [u] }]', m: 'disabled: true' }), 'routes[0].upstreams (line 5): no model has any of them, disabled ones left out, so there is no model under this route'],
    ['a route to upstreams that are disabled', file({ end: 'routes: [{ id: r, path: /v1, upstreams: [{ upstream: u }] }]', u: 'disabled: true' }), 'routes[0].upstreams (line 5): no model has any of them, disabled ones left out, so there is no model under this route'],
    ['a model that only speaks gemini', file({ p: 'protocol: gemini' }), 'models[0].upstreams (line 4): none of them can answer anything: gemini and bedrock are not spoken yet'],
    ['a model that only speaks gemini and bedrock', file({ u: 'protocol: [bedrock, gemini], serves: [embeddings]' }), 'models[0].upstreams (line 4): none of them can answer anything: gemini and bedrock are not spoken yet'],
  ])('%s', (_, text, warning) => {
    expect(load(text).warnings).toEqual([warning]);
  }); // prettier-ignore

  it.each([
    ['direct, where the service has it', file({ server: `${TOKEN}, direct: true`, end: CALLER })],
    ['a default that is there', file({ end: 'default_model: m' })],
    ['a route to an upstream of a model', file({ end: 'routes: [{ id: r, path: /v1, upstreams: [u] }]' })],
    ['a disabled route', file({ m: 'disabled: true', end: 'routes: [{ id: r, path: /v1, disabled: true, upstreams: [u] }]' })],
    ['a route by which providers are addressed', file({ server: 'direct: true', m: 'disabled: true', end: 'routes: [{ id: r, path: /v1, upstreams: [u] }]' })],
    ['a model that speaks one more protocol', file({ p: 'protocol: [gemini, messages]' })],
    ['a model whose upstream overrides its provider', file({ p: 'protocol: gemini', u: 'protocol: chat-completions' })],
  ])('none of %s', (_, text) => {
    expect(load(text).warnings).toEqual([]);
  }); // prettier-ignore
});

describe('a file with a mistake', () => {
  const told = (text: string): string[] => {
    const result = loadConfig({ text }, {});
    return result.ok ? [] : [...result.problems, ...result.warnings].map(formatProblem);
  };

  it.each([
    ['upstreams of a model', file({}).replace('upstreams: [u]', 'upstreams: u'), 'models[0].upstreams (line 4): must be'],
    ['the provider of an upstream', file({}).replace('provider: p', 'provider: [p]'), 'upstreams[0].provider (line 3): must be'],
    ['a plugin that may bring an order', file({ m: 'order: mine', end: 'plugins: [mine]' }), 'plugins[0] (line 5): must be'],
    ['labels that a selector names', file({ server: TOKEN, m: 'labels: { tier: 5 }', end: 'consumers: [{ id: c, select: { models: tier=5 }, keys: [{ id: k, value: caller-key-1 }] }]' }), 'models[0].labels.tier (line 4): must be'],
  ])('is told nothing that only follows from it: %s', (_, text, problem) => {
    expect(told(text)).toEqual([expect.stringContaining(problem)]);
  }); // prettier-ignore

  it('a model whose only upstreams that speak are disabled', () => {
    const text = `
server: { metrics_token: some-token-1234 }
providers: [{ id: p, url: 'http://127.0.0.1:1' }]
upstreams: [{ id: g, provider: p, model: r, protocol: gemini }, { id: u, provider: p, model: r, disabled: true }]
models: [{ name: m, upstreams: [g, u] }]
`;
    expect(load(text).warnings).toEqual([expect.stringContaining('none of them can answer anything')]);
  });
});
