import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { PROVIDER_ERRORS } from '../../../test/fixtures/provider-errors.js';
import { ERROR_CLASSES } from '../../contracts/error-class.js';
import { classify, classOfStatus } from './classify.js';
import { ERROR_VOCABULARY } from './error-vocabulary.js';

function classified(status: number, body: unknown, headers: Readonly<Record<string, string>> = {}) {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const json = typeof body === 'string' ? undefined : body;
  return classify({ status, json, text, header: (name) => headers[name] });
}
const error = (members: object) => ({
  error: { message: 'no', type: 'provider_error', param: null, code: null, ...members },
});

describe('classify', () => {
  it.each(PROVIDER_ERRORS.map((one, i) => [i, one.provider, one.status, one.class, one] as const))(
    '%i: %s %i is %s',
    (_i, _provider, status, name, { body, headers, retryDelayMs }) => {
      const found = classified(status, body, headers);
      expect([found.class, found.retryDelayMs]).toEqual([name, retryDelayMs]);
    },
  );

  it('names where each of them is documented', () => {
    for (const { source } of PROVIDER_ERRORS) expect(URL.parse(source)?.protocol).toBe('https:');
  });

  it('lets a known code win over type, message and status', () => {
    const loud = 'insufficient quota: maximum context length, prompt is too long';
    expect(classified(401, error({ code: 'rate_limit_exceeded', message: loud })).class).toBe('rate_limited');
    expect(classified(400, error({ type: 'rate_limit_error', message: loud })).class).toBe('rate_limited');
    expect(classified(401, error({ message: loud })).class).toBe('quota_exhausted');
    expect(classified(429, error({ code: 'model_not_found', type: 'rate_limit_error' })).class).toBe(
      'model_gone',
    );
    expect(classified(429, error({ code: 'context_length_exceeded' })).class).toBe('context_length');
    expect(classified(429, error({ code: 'something_new', type: 'insufficient_quota' })).class).toBe(
      'quota_exhausted',
    );
  });

  it.each([
    [400, 'bad_request'],
    [401, 'unauthorized'],
    [402, 'quota_exhausted'],
    [403, 'unauthorized'],
    [404, 'model_gone'],
    [405, 'bad_request'],
    [408, 'busy'],
    [409, 'bad_request'],
    [413, 'bad_request'],
    [415, 'bad_request'],
    [422, 'bad_request'],
    [425, 'busy'],
    [429, 'rate_limited'],
    [499, 'bad_request'],
    [500, 'server_error'],
    [503, 'server_error'],
    [529, 'server_error'],
    [599, 'server_error'],
    [302, 'server_error'],
  ] as const)('%i without a word of explanation is %s', (status, name) => {
    expect(classOfStatus(status)).toBe(name);
    if (status >= 400) expect(classified(status, '').class).toBe(name);
  });

  it('takes an error inside a 2xx for the provider’s fault, unless it calls itself something else', () => {
    expect(classified(200, error({})).class).toBe('server_error');
    expect(classified(200, error({ message: 'maximum context length' })).class).toBe('server_error');
    expect(classified(200, error({ code: 'insufficient_quota' })).class).toBe('quota_exhausted');
    expect(classified(200, error({ code: '401' })).class).toBe('unauthorized');
    expect(classified(200, error({ code: 400 })).class).toBe('bad_request');
    expect(classified(200, error({ code: 200 })).class).toBe('server_error');
    expect(classified(200, { error: { status: 'RESOURCE_EXHAUSTED' } }).class).toBe('rate_limited');
  });

  it.each([
    ['invalid_request_error', "Vector store with id ['vs_bogus'] not found."],
    ['not_found_error', 'File not found: file_zzz'],
    ['invalid_request_error', "Container with id 'cntr_x' not found."],
    ['invalid_request_error', 'Container is expired.'],
    ['invalid_request_error', 'No such File object: file-abc'],
    ['invalid_request_error', "Previous response with id 'resp_1' not found."],
    ['invalid_request_error', "Conversation with id 'conv_1' not found."],
    [
      'invalid_request_error',
      "Item with id 'rs_1' not found. Items are not persisted when `store` is false.",
    ],
  ])('what a request names beside its model is its own matter: %s, %s', (type, message) => {
    for (const status of [400, 404])
      expect(classified(status, error({ type, code: null, message })).class).toBe('bad_request');
    expect(classified(500, error({ message })).class).toBe('server_error');
  });

  it.each([
    ['not_found_error', 'File Not Found'],
    ['not_found_error', 'File not found: /models/llama.gguf'],
    ['not_found_error', 'No such file or directory: /models/x'],
    ['not_found_error', 'model: claude-none'],
    ['invalid_request_error', 'The model `file-7b` does not exist or you do not have access to it.'],
    ['not_found_error', 'The model `response` does not exist.'],
    ['not_found_error', ''],
  ])('a 404 that speaks of nothing else is the model: %s, %s', (type, message) => {
    expect(classified(404, error({ type, message })).class).toBe('model_gone');
  });

  it.each([
    [
      "Invalid value: 'insufficient quota'. Supported values are: 'system' and 'user'.",
      'invalid_request_error',
    ],
    ["Invalid value: 'it's insufficient quota'. Supported values are: 'system'.", null],
    ['messages[0].role: unknown variant `insufficient balance`, expected one of `system`, `user`', null],
    ["[{'type': 'literal_error', 'input': 'exceeded your current quota'}]", null],
    ['Unknown tool insufficient quota', null],
    ['Error while downloading https://example.org/credit balance is too low', null],
    ['Error retrieving tool list from MCP server: insufficient quota', null],
    ['The parameter "x" is bad. Insufficient quota', null],
    ["Invalid value: 'model not exist'.", null],
    ['Bad thing. Unknown role insufficient quota', null],
    ['Unknown tool foo. insufficient quota', null],
    ['“insufficient credit” is no role', null],
  ])('what a client may have written takes no key and no model from the others: %s', (message, type) => {
    for (const status of [400, 409, 413, 422, 424])
      expect(classified(status, error({ type, message })).class).toBe('bad_request');
    expect(classified(404, error({ type, message })).class).toBe('model_gone');
    expect(classified(200, error({ code: 400, message })).class).toBe('bad_request');
  });

  it.each([
    "cannot parse 'insufficient quota'",
    "cannot decode b'insufficient quota'",
    'Invalid tool_choice: insufficient quota',
    `Failed to parse 'role' of 'insufficient quota ${'a'.repeat(9000)}'`,
    'insufficient quota is not a valid model ID',
    "insufficient quota is not of type 'string'",
    'Duplicate id insufficient quota',
    'Voice insufficient quota not available.',
    'incorrect api key provided is not a valid model ID',
    '{"detail":[{"input":"x","message":"Invalid value: insufficient quota"}]}',
  ])('what a client may have written counts with a fault of the server neither: %s', (message) => {
    expect(classified(500, error({ message })).class).toBe('server_error');
    expect(classified(400, error({ message })).class).toBe('bad_request');
  });

  it.each([
    'Insufficient Balance',
    'Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing.',
    "You've exceeded your current quota, please check your plan and billing details.",
    'Error code: 400 - insufficient funds',
    'error: insufficient quota: please recharge',
    'Your account has insufficient credit. Invalid requests are not billed.',
    'user has insufficient quota',
    'Provider error: Insufficient Balance',
    '(402) Insufficient balance',
    'litellm.BadRequestError: OpenAIException - Insufficient Balance',
    'litellm.BadRequestError: AnthropicException - {"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API."}}',
  ])('what a provider says itself counts with any status: %s', (message) => {
    for (const status of [400, 402, 403, 404, 422, 429, 500])
      expect(classified(status, error({ message })).class).toBe('quota_exhausted');
  });

  it.each([
    'No endpoints found that support image input',
    'No endpoints found that support tool use. Try disabling "search".',
    'No allowed providers are available for the selected model.',
    'This is a chat model and not supported in the v1/completions endpoint. Did you mean to use v1/chat/completions?',
    "No response found with id 'resp_1'.",
  ])('a 404 about what is asked of a model is not about the model: %s', (message) => {
    expect(classified(404, error({ code: 404, message })).class).toBe('bad_request');
  });

  it.each([
    ['Incorrect API key provided: xai-***. You can obtain one elsewhere.', 'unauthorized'],
    ['API key not valid. Please pass a valid API key.', 'unauthorized'],
    ['This organization has been disabled.', 'unauthorized'],
    ["You passed 9000 input tokens, but the model's context length is only 8192 tokens.", 'context_length'],
    ['The prompt is longer than the maximum model length of 4096.', 'context_length'],
    ['input length and `max_tokens` exceed context limit: 1 + 2 > 2', 'context_length'],
    ['Content violates usage guidelines. Failed check: SAFETY', 'bad_request'],
  ])('knows the words of a 400: %s', (message, name) => {
    expect(classified(400, error({ message })).class).toBe(name);
  });

  it('a 402 about one request takes no key, one about the account does', () => {
    const afford = (tokens: number) =>
      `This request requires more credits, or fewer max_tokens. You requested up to 64000 tokens, but can only afford ${tokens}.`;
    expect(classified(402, error({ code: 402, message: afford(30_104) })).class).toBe('busy');
    expect(classified(402, error({ code: 402, message: afford(7) })).class).toBe('quota_exhausted');
    expect(classified(402, error({ message: 'Prompt tokens limit exceeded: 2 > 1.' })).class).toBe('busy');
  });

  it('a 403 about what a request holds takes no key', () => {
    const code = 'The caller does not have permission to execute the specified operation';
    expect(classified(403, { code, error: 'Content violates usage guidelines. Failed check: X' }).class).toBe(
      'bad_request',
    );
    expect(classified(403, 'error code: 1010').class).toBe('busy');
    const cache = {
      error: {
        code: 403,
        status: 'PERMISSION_DENIED',
        message: 'CachedContent not found (or permission denied)',
      },
    };
    expect([classified(403, cache).class, classified(403, [cache]).class]).toEqual([
      'bad_request',
      'bad_request',
    ]);
  });

  it('a 404 about a path, or what a request wants of providers, takes no model', () => {
    for (const message of [
      'This model is only supported in v1/responses and not in v1/chat/completions.',
      'No endpoints found that can handle the requested parameters.',
      'All providers have been ignored.',
    ])
      expect(classified(404, error({ code: 404, message })).class).toBe('bad_request');
    const policy = 'No endpoints found matching your data policy (Zero data retention).';
    expect(classified(404, error({ code: 404, message: policy })).class).toBe('busy');
    const aside = { code: 'model_not_found', param: 'tools[0].model' };
    expect(classified(400, error(aside)).class).toBe('bad_request');
    expect(classified(404, error({ ...aside, param: 'model' })).class).toBe('model_gone');
  });

  it('reads what a stream of responses tells within its response', () => {
    const failed = (code: string) => ({
      type: 'response.failed',
      response: { status: 'failed', error: { code, message: 'no' } },
    });
    expect(classified(200, failed('rate_limit_exceeded')).class).toBe('rate_limited');
    expect(classified(200, failed('insufficient_quota')).class).toBe('quota_exhausted');
    expect(classified(200, failed('invalid_image_url')).class).toBe('bad_request');
    expect(classified(200, failed('server_error')).class).toBe('server_error');
  });

  it('a key behind a `?` takes none of ours', () => {
    const found = classify({
      status: 401,
      json: undefined,
      text: 'no',
      header: () => undefined,
      namesMore: true,
    });
    expect(found.class).toBe('busy');
  });

  it('a 404 is the model only by its name where the request named more that may be missing', () => {
    const at = (body: object) =>
      classify({
        status: 404,
        json: body,
        text: JSON.stringify(body),
        header: () => undefined,
        namesMore: true,
      }).class;
    expect(at({ detail: 'Not Found' })).toBe('bad_request');
    expect(at(error({ code: '404', message: 'Resource not found' }))).toBe('bad_request');
    expect(at(error({ type: 'not_found_error', message: 'no such thing' }))).toBe('bad_request');
    expect(at(error({ message: 'The model `x` does not exist' }))).toBe('model_gone');
    expect(at(error({ code: 'DeploymentNotFound' }))).toBe('model_gone');
    expect(at(error({ type: 'not_found_error', message: 'model: claude-none' }))).toBe('model_gone');
  });

  it('a 403 is the key, but not where it is a page or speaks of a file', () => {
    expect(classified(403, '<html><title>Blocked</title></html>').class).toBe('busy');
    expect(classified(403, '\n <!DOCTYPE html>').class).toBe('busy');
    expect(classified(401, '<html></html>').class).toBe('unauthorized');
    expect(classified(403, 'Forbidden').class).toBe('unauthorized');
    const type = 'permission_error';
    const file = 'You do not have access to the file file_abc';
    expect(classified(403, error({ type, message: file })).class).toBe('bad_request');
    expect(classified(403, error({ type, message: 'no access' })).class).toBe('unauthorized');
    expect(classified(400, error({ type })).class).toBe('unauthorized');
  });

  it.each(['failed_to_download_image', 'invalid_image', 'invalid_prompt', 'image_content_policy_violation'])(
    'an error inside a 2xx about what the client sent is the client’s: %s',
    (code) => {
      expect(classified(200, { error: { code, message: 'no' } }).class).toBe('bad_request');
    },
  );

  it('an error inside a 2xx that calls itself a bad request is one', () => {
    expect(classified(200, { type: 'error', error: { type: 'invalid_request_error' } }).class).toBe(
      'bad_request',
    );
    expect(classified(200, { error: { status: 'INVALID_ARGUMENT' } }).class).toBe('bad_request');
    expect(classified(401, error({ type: 'invalid_request_error' })).class).toBe('unauthorized');
    const credit = { type: 'invalid_request_error', message: 'Your credit balance is too low to go on.' };
    expect(classified(200, { error: credit }).class).toBe('quota_exhausted');
  });

  it('a code that only repeats the status counts behind the message', () => {
    expect(classified(400, error({ type: 'not_found_error', message: 'prompt is too long' })).class).toBe(
      'context_length',
    );
    expect(classified(200, error({ type: 'not_found_error' })).class).toBe('model_gone');
    expect(classified(400, error({ type: 'not_found_error' })).class).toBe('model_gone');
  });

  it('does not care for case or white space', () => {
    expect(classified(400, error({ code: ' Insufficient_Quota ' })).class).toBe('quota_exhausted');
    expect(classified(400, error({ message: 'PROMPT IS TOO LONG' })).class).toBe('context_length');
  });

  it('never throws, for any status and any body', () => {
    const hostile = fc.letrec((tie) => ({
      value: fc.oneof(
        fc.constantFrom(null, 0, -1, 429, '429', true, '', 'rate_limit', '__proto__'),
        fc.string(),
        fc.array(tie('value'), { maxLength: 3 }),
        fc.dictionary(
          fc.constantFrom(
            'error',
            'code',
            'type',
            'message',
            'details',
            'metadata',
            'status',
            'error_code',
            '__type',
            'violations',
            'quotaId',
            'reason',
            'retryDelay',
            'detail',
          ),
          tie('value'),
        ),
      ),
    })).value;
    fc.assert(
      fc.property(fc.integer({ min: 200, max: 599 }), hostile, (status, body) => {
        expect(ERROR_CLASSES).toContain(classified(status, body).class);
      }),
    );
  });

  it('is quick on a hostile message', () => {
    for (const phrase of [
      'input token count ',
      'file with id ',
      'no such ',
      'file not found: ',
      "'a ",
      "''",
      '"',
      'error: ',
      ': ',
    ])
      expect(classified(400, error({ message: phrase.repeat(400_000) })).class).toBe('bad_request');
  });
});

describe('ERROR_VOCABULARY', () => {
  it('has an entry for each class, in lower case, and no code or status twice', () => {
    expect(Object.keys(ERROR_VOCABULARY).sort()).toEqual([...ERROR_CLASSES].sort());
    const entries = Object.values(ERROR_VOCABULARY);
    const codes = entries.flatMap(({ codes = [], vagueCodes = [], codePrefixes = [] }) => [
      ...codes,
      ...vagueCodes,
      ...codePrefixes,
    ]);
    for (const code of codes) expect(code).toBe(code.toLowerCase());
    expect(new Set(codes).size).toBe(codes.length);
    const statuses = entries.flatMap(({ statuses = [] }) => statuses);
    expect(new Set(statuses).size).toBe(statuses.length);
    for (const phrase of entries.flatMap(({ messages = [] }) => messages))
      expect(String(phrase)).toBe(String(phrase).toLowerCase());
  });
});
