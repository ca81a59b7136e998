import 'reflect-metadata';
import { describe, expect, it } from 'vitest';
import { file, load } from '../../../test/support/small-config.js';
import { formatProblem } from './config-problem.js';
import { loadConfig } from './load-config.js';

const PROVIDER = 'id: p, url: "http://127.0.0.1:9/v1"';
const UPSTREAM = 'id: u, provider: p, model: r';
const MODEL = 'name: m, upstreams: [u]';

function fileOf(provider = '', upstream = '', model = '', end = ''): string {
  const entry = (own: string, more: string): string => `[{ ${own}${more === '' ? '' : `, ${more}`} }]`;
  return [
    `providers: ${entry(PROVIDER, provider)}`,
    `upstreams: ${entry(UPSTREAM, upstream)}`,
    `models: ${entry(model.startsWith('upstreams') ? 'name: m' : MODEL, model)}`,
    end,
  ].join('\n');
}

describe('a key that limits or closes something, without its value', () => {
  const consumer = (more: string): string => fileOf('', '', '', `consumers: [{ id: a, ${more} }]`);
  const consumerKey = (more: string): string => consumer(`keys: [{ id: k, value: v, ${more} }]`);
  const route = (more: string): string => fileOf('', '', '', `routes: [{ id: r, path: /v1, ${more} }]`);
  const server = (more: string): string => fileOf('', '', '', `server: { ${more} }`);

  it.each([
    ['routes[0].upstreams', route('upstreams:')],
    ['routes[0].labels', route('labels:')],
    ['routes[0].disabled', route('disabled:')],
    ['consumers[0].disabled', consumer('disabled:')],
    ['consumers[0].labels', consumer('labels:')],
    ['consumers[0].quota', consumer('quota:')],
    ['consumers[0].keys', consumer('keys:')],
    ['providers[0].keys', fileOf('keys:')],
    ['consumers[0].keys[0].expires', consumerKey('expires:')],
    ['consumers[0].keys[0].disabled', consumerKey('disabled:')],
    ['consumers[0].keys[0].labels', consumerKey('labels:')],
    ['providers[0].keys[0].expires', fileOf('keys: [{ value: v, expires: }]')],
    ['providers[0].keys[0].disabled', fileOf('keys: [{ value: v, disabled: }]')],
    ['providers[0].keys[0].quota', fileOf('keys: [{ value: v, quota: }]')],
    ['providers[0].disabled', fileOf('disabled:')],
    ['providers[0].labels', fileOf('labels:')],
    ['providers[0].quota', fileOf('quota:')],
    ['upstreams[0].disabled', fileOf('', 'disabled:')],
    ['upstreams[0].labels', fileOf('', 'labels:')],
    ['upstreams[0].quota', fileOf('', 'quota:')],
    ['models[0].disabled', fileOf('', '', 'disabled:')],
    ['models[0].labels', fileOf('', '', 'labels:')],
    ['models[0].max_attempts', fileOf('', '', 'max_attempts:')],
    ['models[0].upstreams[0].quota', fileOf('', '', 'upstreams: [{ upstream: u, quota: }]')],
    [
      'models[0].upstreams[0].spill_min_priority',
      fileOf('', '', 'upstreams: [{ upstream: u, spill_min_priority: }]'),
    ],
    ['server.metrics_token', server('metrics_token:')],
  ])('%s is refused', (path, text) => {
    for (const nothing of [':', ': null', ': ~']) {
      // The empty key is the last one before a bracket.
      const at = text.search(/: [}\]]/);
      const result = loadConfig({ text: text.slice(0, at) + nothing + text.slice(at + 1) }, {});
      expect(result.ok ? [] : result.problems.map(formatProblem)).toEqual([
        expect.stringContaining(`${path} (line `),
      ]);
    }
  });

  it('is still no problem where null is a value of its own', () => {
    expect(load(file({ end: 'consumers: [{ id: a, max_concurrency: null }]' })).config.consumers?.[0]?.limit).toBe(Infinity); // prettier-ignore
  });
});
