/** A source of chance in [0, 1); mulberry32, so that a run can be asked for again by its seed. */
export function chance(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

const BODY = '{"model":"m","stream":true,"messages":[{"role":"user","content":"h\\u00e9 🙂"}]}';

const SEEDS: readonly string[] = [
  request('POST /v1/chat/completions', BODY),
  request(
    'POST /v1/chat/completions?a=b',
    BODY.replace('true', 'false'),
    'x-request-id: abc\r\naccept: */*\r\n',
  ),
  request('POST /chat/completions', BODY, 'content-encoding: gzip\r\n'),
  `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n${BODY.length.toString(16)}\r\n${BODY}\r\n0\r\n\r\n`,
  request('POST /v1/chat/completions', BODY, 'expect: 100-continue\r\nconnection: x-a, close\r\nx-a: b\r\n'),
  'GET /v1/models HTTP/1.1\r\nhost: x\r\n\r\n',
  'GET /v1/models/a%2Fb%zz HTTP/1.1\r\nhost: x\r\n\r\n',
  'HEAD /healthz HTTP/1.1\r\nhost: x\r\n\r\n',
  'OPTIONS * HTTP/1.1\r\nhost: x\r\n\r\n',
  'GET http://x/metrics HTTP/1.1\r\nhost: x\r\n\r\n',
  'DELETE /v1//chat///completions/ HTTP/1.0\r\n\r\n',
];

const TOKENS: readonly string[] = [
  '\r\n',
  '\n',
  '\r',
  '\0',
  ' ',
  ':',
  '\r\n\r\n',
  'content-length: 5\r\n',
  'transfer-encoding: chunked\r\n',
  '0\r\n\r\n',
  'ffffffffffffffff\r\n',
  '-1',
  '{',
  '}',
  '[',
  '"',
  '\\u',
  '__proto__',
  '%00',
  '/..',
  '?',
  '#',
  '\xff\xfe',
  'HTTP/2.0',
  'upgrade: websocket\r\n',
  'connection: upgrade\r\n',
  'a'.repeat(5000),
  '['.repeat(3000),
  'POST / HTTP/1.1\r\n',
];

function request(line: string, body: string, more = ''): string {
  const length = Buffer.byteLength(body);
  return `${line} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n${more}content-length: ${length}\r\n\r\n${body}`;
}

/** Bytes to send on one connection: noise, or a few requests of which some are damaged. */
export function hostileBytes(random: () => number): Buffer {
  const whole = (most: number) => Math.floor(random() * most);
  if (random() < 0.1) return Buffer.from(Array.from({ length: whole(400) }, () => whole(256)));
  const parts: Buffer[] = [];
  for (let i = 1 + whole(3); i > 0; i--) {
    let bytes: Buffer = Buffer.from(SEEDS[whole(SEEDS.length)] as string, 'utf8');
    for (let j = whole(5); j > 0; j--) bytes = damaged(bytes, whole);
    parts.push(bytes);
  }
  return Buffer.concat(parts);
}

function damaged(bytes: Buffer, whole: (most: number) => number): Buffer {
  const at = whole(bytes.length + 1);
  switch (whole(5)) {
    case 0: {
      const copy = Buffer.from(bytes);
      if (at < copy.length) copy[at] = whole(256);
      return copy;
    }
    case 1:
      return bytes.subarray(0, at);
    case 2:
      return Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + 1 + whole(20))]);
    case 3:
      return Buffer.concat([bytes.subarray(0, at), bytes.subarray(Math.max(0, at - whole(60)))]);
    default:
      return Buffer.concat([
        bytes.subarray(0, at),
        Buffer.from(TOKENS[whole(TOKENS.length)] as string, 'latin1'),
        bytes.subarray(at),
      ]);
  }
}

/**
 * What is wrong with the bytes that a service answered, or null: each answer must be HTTP, each error one of OpenAI's
 * form, and nothing of the framework's may show.
 */
export function faultIn(answer: Buffer): string | null {
  let rest = answer.toString('latin1');
  while (rest !== '') {
    const end = rest.indexOf('\r\n\r\n');
    const head = end < 0 ? '' : rest.slice(0, end);
    const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(head)?.[1]);
    if (!(status >= 100)) return `no HTTP: ${JSON.stringify(rest.slice(0, 200))}`;
    rest = rest.slice(end + 4);
    if (status < 200 || status === 204) continue;
    const length = /\r\ncontent-length: (\d+)/i.exec(head)?.[1];
    if (length === undefined) return null;
    const body = rest.slice(0, Number(length));
    // An answer to HEAD has a length and no body; what follows is the next answer, or nothing.
    if (body === '' || body.startsWith('HTTP/1.1 ')) continue;
    rest = rest.slice(Number(length));
    if (status >= 400 && !isErrorOfOurs(body)) return `${status} with ${JSON.stringify(body.slice(0, 200))}`;
  }
  return null;
}

function isErrorOfOurs(body: string): boolean {
  try {
    const { error } = JSON.parse(body) as { error?: Record<string, unknown> };
    return (
      ['message', 'type', 'code'].every((name) => typeof error?.[name] === 'string') &&
      error?.['param'] !== undefined
    );
  } catch {
    return false;
  }
}
