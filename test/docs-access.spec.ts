import 'reflect-metadata';
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import * as accessErrors from '../src/common/errors/access-errors.js';
import { anthropicType } from '../src/common/errors/error-form.js';
import { LabelSelector } from '../src/common/selector/label-selector.js';
import { AUTH_STYLES, CAPABILITIES, PROTOCOLS } from '../src/config/access-config.js';
import { formatProblem } from '../src/config/loader/config-problem.js';
import { loadConfig } from '../src/config/loader/load-config.js';
import { OPERATIONS } from '../src/contracts/operation.js';

const read = (name: string): string => readFileSync(new URL(`../docs/${name}.md`, import.meta.url), 'utf8');
const access = read('access');
const protocols = read('protocols');
const configuration = read('configuration');
const blocks = [access, protocols].flatMap((page) =>
  [...page.matchAll(/^```yaml\n([\s\S]*?)^```$/gm)].map(([, block]) => block ?? ''),
);

describe('the pages about access and protocols', () => {
  it.each(blocks)('have configuration that loads without a warning: %#', (text) => {
    const result = loadConfig({ text }, {});
    expect(result.ok ? [] : result.problems.map(formatProblem)).toEqual([]);
    expect(result.warnings).toEqual([]);
  });

  it('name each code with its status', () => {
    const told = [...access.matchAll(/^\| (\d+) +\| `(\w+)` +\|/gm)].map(([, status, code]) => [
      Number(status),
      code,
    ]);
    const { missingApiKey, invalidApiKey, apiKeyDisabled, apiKeyExpired, consumerDisabled, routeNotAllowed } =
      accessErrors;
    const errors = [
      missingApiKey,
      invalidApiKey,
      apiKeyDisabled,
      apiKeyExpired,
      consumerDisabled,
      routeNotAllowed,
    ];
    expect(told).toEqual(errors.map((make) => [make().status, make().code]));
    for (const code of [
      'consumer_busy',
      'previous_response_not_found',
      'invalid_id',
      'miscased_key',
      'unsupported_protocol',
    ])
      expect(access).toContain(code);
  });

  it('show selectors that are some', () => {
    const row = /^\| (`[^|]+`) +\|/gm;
    const table = access.slice(access.indexOf('| selector'), access.indexOf('A value is any run'));
    const shown = [...table.matchAll(row)].flatMap(([, cell]) =>
      [...(cell ?? '').matchAll(/`([^`]+)`/g)].map(([, text]) => text ?? ''),
    );
    expect(shown.length).toBeGreaterThan(8);
    for (const text of shown) expect(() => LabelSelector.parse(text)).not.toThrow();
  });

  it('name every operation, protocol, capability and place of a key', () => {
    for (const { path } of OPERATIONS) {
      const last = path.slice(path.lastIndexOf('/'));
      expect(protocols.includes(`/v1${path}`) || protocols.includes(`\`${last}\``)).toBe(true);
    }
    for (const word of [...PROTOCOLS, ...CAPABILITIES, ...AUTH_STYLES])
      expect(configuration).toContain(`\`${word}\``);
  });

  it("give Anthropic's types of errors by status", () => {
    const told = [...protocols.matchAll(/^\| (\d{3}) +\| `(\w+)` +\|/gm)].map(([, status, type]) => [
      Number(status),
      type,
    ]);
    expect(told.length).toBe(6);
    for (const [status, type] of told) expect(anthropicType(Number(status))).toBe(type);
    expect([anthropicType(418), anthropicType(500)]).toEqual(['invalid_request_error', 'api_error']);
  });
});
