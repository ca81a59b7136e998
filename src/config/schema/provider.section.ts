import type { RecoveryMode } from '../gateway-config.js';
import type { PlainObject } from '../loader/plain-object.js';
import { BackoffSection } from './backoff.section.js';
import { quotaSetting, type QuotaSection } from './quota.section.js';
import { headerName, headers } from './header-rules.js';
import { ErrorsSection } from './errors.section.js';
import { keyOrder, secretsOrSections } from './key-rules.js';
import { KeySection } from './key.section.js';
import { labels, NO_LABELS } from './label-rules.js';
import { limit } from './number-rules.js';
import { ProbeSection } from './probe.section.js';
import { durationOr, RECOVERY_MODES, word } from './recovery-rules.js';
import { authStyle, protocols } from './protocol-rules.js';
import { Setting } from './setting.js';
import { proxy } from './proxy-rule.js';
import { prefill } from './stream-rules.js';
import { jsonObject, section, wordOrSection } from './structure-rules.js';
import { flag, NO_FLAG, secret, text } from './text-rules.js';
import { TlsSection } from './tls.section.js';
import { duration, onOff, thinkTags } from './tolerant-rules.js';
import { url } from './url-rule.js';

/** What a provider wants beside the text, merged into the assistant message and into the body. */
export interface PrefillMerge {
  readonly message?: PlainObject;
  readonly body?: PlainObject;
}

/** One of `providers:`: a place that speaks the OpenAI API. */
export class ProviderSection {
  @Setting({
    rule: text,
    required: true,
    example: 'routerai',
    description: 'Unique id; upstreams refer to it.',
  })
  id?: string;

  @Setting({
    rule: url,
    required: true,
    substituted: true,
    example: 'https://routerai.ru/api/v1',
    description: 'Base url, http or https, without query and user info; `${VAR}` is replaced.',
  })
  url?: string;

  @Setting({
    rule: secret,
    substituted: true,
    default: '',
    example: '${ROUTER_API_KEY}',
    description: 'Sent as `Authorization: Bearer …`; empty or absent = no such header; `${VAR}` is replaced.',
  })
  key?: string;

  @Setting({
    rule: secretsOrSections(KeySection),
    section: KeySection,
    substituted: true,
    example: ['${OPENAI_KEY_A}', '${OPENAI_KEY_B}'],
    nullProblem: 'has no value; list the keys, write [] for no authorization, or remove it',
    description:
      'Several keys instead of `key`; each is a text or a mapping. [] = one empty key: no authorization.',
  })
  keys?: (string | KeySection)[];

  @Setting({
    rule: keyOrder,
    default: 'round_robin',
    description: 'round_robin = the keys take turns at each upstream; ordered = the first usable one.',
  })
  key_order?: 'round_robin' | 'ordered';

  @Setting({
    rule: wordOrSection(['classified', 'simple'], ErrorsSection),
    section: ErrorsSection,
    example: 'classified',
    description:
      'How failures are told apart: simple (default with key), classified (default with keys), or a mapping that changes a class.',
  })
  errors?: 'classified' | 'simple' | ErrorsSection;

  @Setting({
    rule: protocols,
    default: 'chat-completions',
    example: 'messages',
    description: 'What the provider speaks, one or a list with the preferred one first.',
  })
  protocol?: string | string[];

  @Setting({
    rule: authStyle,
    example: 'x-api-key',
    description: 'Header that carries the key; absent = by the protocol (messages: x-api-key).',
  })
  auth?: string;

  @Setting({
    rule: flag,
    nullProblem: NO_FLAG,
    default: false,
    description: 'true = its upstreams are out of every model.',
  })
  disabled?: boolean;

  @Setting({
    rule: labels,
    nullProblem: NO_LABELS,
    example: { region: 'eu' },
    description: 'Labels of all its upstreams.',
  })
  labels?: Record<string, string>;

  @Setting({
    rule: headers,
    substituted: true,
    example: { 'x-title': 'llm' },
    description: 'Fixed request headers, set last; `${VAR}` is replaced in their values.',
  })
  headers?: Record<string, string>;

  @Setting({
    rule: proxy,
    substituted: true,
    example: 'http://user:${PROXY_PASSWORD}@proxy.example:3128',
    description:
      'Forward proxy on the way to this provider, http or https; none = a direct connection; absent = as HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY say; `${VAR}` is replaced.',
  })
  proxy?: string;

  @Setting({
    rule: section(TlsSection),
    section: TlsSection,
    description: 'Private certificate authority and client certificate for an https url.',
  })
  tls?: unknown;

  @Setting({
    rule: limit,
    example: 4,
    description: 'Default slots of each upstream of this provider (not a shared pot); 0 or null = unlimited.',
  })
  max_concurrency?: number | null;

  @Setting({
    rule: text,
    example: 'gpu0',
    description: 'Default slot group of its upstreams.',
  })
  slot_group?: string | null;

  @Setting({
    rule: jsonObject,
    example: { provider: { allow_fallbacks: false } },
    description:
      'Merged into the body of every request to this provider, before the patches of upstream and model.',
  })
  patch?: PlainObject;

  @Setting({
    rule: headerName,
    example: 'x-opencode-session',
    description: 'Header that the proxy sets to a session id which it computes from the history of messages.',
  })
  session_header?: string;

  @Setting({
    rule: thinkTags,
    tolerated: true,
    default: 'off',
    example: 'split',
    description:
      '<think>…</think> in answers: off = untouched, split = moved to reasoning_content, strip = dropped.',
  })
  think_tags?: unknown;

  @Setting({
    rule: text,
    example: 'reasoning_content',
    description:
      'Field that this provider wants in every assistant message of the history; absent = nothing is added.',
  })
  reasoning_field?: string;

  @Setting({
    rule: flag,
    default: false,
    description: 'With reasoning_field: write "" where a message has no reasoning at all.',
  })
  reasoning_empty_ok?: boolean;

  @Setting({
    rule: durationOr(BackoffSection),
    section: BackoffSection,
    tolerated: true,
    example: 'P1M',
    description:
      'Longest rest after failures, counted together for all upstreams without a backoff of their own.',
  })
  backoff?: unknown;

  @Setting({
    rule: duration,
    tolerated: true,
    default: 'PT30S',
    description: 'Time to the first body byte of a streamed answer; PT0S = off.',
  })
  first_byte_timeout?: unknown;

  @Setting({
    rule: duration,
    tolerated: true,
    example: 'PT20S',
    description:
      'Time to the first meaningful event of a streamed answer, before another upstream takes over; absent or PT0S = off.',
  })
  first_token_timeout?: unknown;

  @Setting({
    rule: duration,
    tolerated: true,
    example: 'PT1M',
    description: 'Longest silence between two bytes of an answer; absent or PT0S = off.',
  })
  idle_timeout?: unknown;

  @Setting({
    rule: prefill,
    default: false,
    description:
      'Its upstreams can go on with a text that another one began: true, or what to merge into that message and the body.',
  })
  prefill?: boolean | PrefillMerge;

  @Setting({
    rule: duration,
    tolerated: true,
    default: 'PT1S',
    description: 'Interval of the small requests to a resting upstream; PT0S = off.',
  })
  probe_interval?: unknown;

  @Setting({
    rule: section(ProbeSection),
    section: ProbeSection,
    description: 'How a resting upstream is asked whether it is back.',
  })
  probe?: ProbeSection;

  @Setting({
    rule: word(RECOVERY_MODES),
    default: 'probe',
    example: 'half_open',
    description:
      'What brings a resting upstream back early: probe = small requests; half_open = real requests in the second half of the rest; both; timer = nothing.',
  })
  recovery?: RecoveryMode;

  @Setting({
    rule: duration,
    tolerated: true,
    example: 'PT10M',
    description: "Overrides the server's request_timeout.",
  })
  request_timeout?: unknown;

  @Setting({
    ...quotaSetting('this provider, by all its upstreams together,'),
    example: [{ tokens: 2_000_000, per: 'P1D' }],
  })
  quota?: QuotaSection[];

  @Setting({
    rule: onOff,
    default: 'on',
    example: 'off',
    description:
      'on = where tokens are counted by a quota, streams are asked for their usage (stream_options.include_usage); off = never, for a provider that refuses it.',
  })
  usage?: unknown;
}
