import { describe, expect, it } from 'vitest';
import { GatewayError, type GatewayErrorOptions } from '../common/errors/gateway-error.js';
import { refusalOf } from './plugin-refusal.js';

const FINE = { status: 403, code: 'no', type: 'permission_error', message: 'No.' };
const cycle: Record<string, unknown> = {};
cycle['self'] = cycle;

describe('refusalOf', () => {
  it('gives the same error, whatever becomes of the thrown one', () => {
    const extra = { list: [1], when: new Date(0) };
    const headers = { 'x-team': 'a\u00e9', 'retry-after': 5 as never };
    const refusal = refusalOf(new GatewayError({ ...FINE, param: 'p', extra, headers }));
    extra.list.push(2);
    headers['x-team'] = '\n';
    expect(refusal).toBeInstanceOf(GatewayError);
    expect([refusal.status, refusal.headers]).toEqual([403, { 'x-team': 'a\u00e9', 'retry-after': '5' }]);
    expect(refusal.body()).toEqual({
      error: {
        message: 'No.',
        type: 'permission_error',
        param: 'p',
        code: 'no',
        list: [1],
        when: '1970-01-01T00:00:00.000Z',
      },
    });
    for (const status of [400, 599])
      expect(refusalOf(new GatewayError({ ...FINE, status })).status).toBe(status);
  });

  const wrong: [string, object, RegExp][] = [
    ...[99, 100, 101, 200, 204, 399, 600, 1000, 403.5, NaN].map((status): [string, object, RegExp] => [
      `status ${status}`,
      { status },
      new RegExp(`the status ${status}, not 400…599`),
    ]),
    ['a status that is a text', { status: '403' }, /a status that is no number/],
    ['no code', { code: undefined }, /the code of its GatewayError is no text/],
    ['no type', { type: undefined }, /the type of its/],
    ['a param that is no text', { param: 5 }, /the param of its/],
    ['a message that is replaced', { extra: { message: 5 } }, /the message of its/],
    ['a letter outside of Latin-1', { headers: { 'x-team': 'Команда' } }, /"x-team" was set to a text that/],
    ['a line feed', { headers: { 'x-team': 'a\nb' } }, /"x-team" was set to a text that/],
    ['no name of a header', { headers: { 'x team': 'a' } }, /"x team" is no name/],
    ['undefined', { headers: { 'x-team': undefined } }, /"x-team" was set to no text/],
    ['a list', { headers: { 'set-cookie': ['a', 'b'] } }, /"set-cookie" was set to no text/],
    ...['content-length', 'Transfer-Encoding', 'connection', 'content-type', 'x-request-id', 'date'].map(
      (name): [string, object, RegExp] => [name, { headers: { [name]: '3' } }, /made by the service itself/],
    ),
    ['a BigInt', { extra: { a: 1n } }, /cannot be written as JSON/],
    ['a cycle', { extra: cycle }, /cannot be written as JSON/],
    [
      'a toJSON that throws',
      {
        extra: {
          toJSON: () => {
            throw new Error('BANG-TEXT');
          },
        },
      },
      /cannot be written as JSON$/,
    ],
  ];
  it.each(wrong)('knows what cannot be sent: %s', (_what, options, told) => {
    const thrown = new GatewayError({ ...FINE, ...options } as GatewayErrorOptions);
    expect(() => refusalOf(thrown)).toThrow(
      expect.objectContaining({ name: 'PluginMistake', message: expect.stringMatching(told) as string }),
    );
  });
});
