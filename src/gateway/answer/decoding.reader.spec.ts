import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import type { AttemptFailure } from '../../contracts/exchange.js';
import { RecordingHost } from '../../../test/support/recording-host.js';
import { waitFor } from '../../../test/support/wait-for.js';
import type { AnswerReader } from './answer-reader.js';
import { DecodingReader } from './decoding.reader.js';
import { JoinAnswerReader } from './join-answer.reader.js';

const MIB = 1024 * 1024;

class Inner implements AnswerReader {
  readonly chunks: Buffer[] = [];
  readonly ends: string[] = [];
  bytes = 0;
  more = true;

  constructor(private readonly keep = true) {}

  data(chunk: Buffer): boolean {
    this.bytes += chunk.length;
    if (this.keep) this.chunks.push(chunk);
    return this.more;
  }
  end(): void {
    this.ends.push('end');
  }
  broken(failure: AttemptFailure): void {
    this.ends.push(`${failure.result} ${failure.status}: ${failure.reason}`);
  }
  get text(): string {
    return Buffer.concat(this.chunks).toString();
  }
}

function reader(inner: AnswerReader, coding = 'gzip', resume: () => void = () => {}): DecodingReader {
  return new DecodingReader(inner, coding, 200, resume);
}

const text = 'the answer '.repeat(500);

describe('DecodingReader', () => {
  it.each([
    ['gzip', gzipSync(text)],
    ['x-gzip', gzipSync(text)],
    ['deflate', deflateSync(text)],
    ['deflate', deflateRawSync(text)],
    ['br', brotliCompressSync(text)],
    ['zstd', zstdCompressSync(text)],
  ])('decodes %s, cut anywhere', async (coding, bytes) => {
    for (const size of [1, 7, bytes.length]) {
      const inner = new Inner();
      const decoding = reader(inner, coding);
      for (let i = 0; i < bytes.length; i += size) decoding.data(bytes.subarray(i, i + size));
      decoding.end();
      await waitFor(() => inner.ends.length > 0, 'the end');
      expect(inner.ends).toEqual(['end']);
      expect(inner.text).toBe(text);
    }
  });

  it('hands on an end without a byte', () => {
    const inner = new Inner();
    reader(inner).end();
    expect(inner.ends).toEqual(['end']);
  });

  it.each([
    ['no gzip at all', Buffer.from('no gzip')],
    ['a gzip cut short', gzipSync(text).subarray(0, 30)],
    [
      'a gzip with a wrong sum',
      Buffer.from(gzipSync(text).map((byte, i, all) => (i === all.length - 6 ? byte ^ 1 : byte))),
    ],
  ])('breaks once at %s', async (_name, bytes) => {
    const inner = new Inner();
    const decoding = reader(inner);
    decoding.data(bytes);
    decoding.end();
    await waitFor(() => inner.ends.length > 0, 'the end');
    decoding.data(bytes);
    decoding.broken({ result: 'net_err', reason: 'later' });
    expect(inner.ends).toEqual(['net_err 200: answer with a broken content coding']);
  });

  it('breaks a bomb at 64 MiB decoded, and takes nothing more of it', async () => {
    const inner = new Inner(false);
    const decoding = reader(inner);
    const bomb = gzipSync(Buffer.alloc(80 * MIB));
    decoding.data(bomb);
    decoding.end();
    await waitFor(() => inner.ends.length > 0, 'the end');
    expect(inner.ends).toEqual(['net_err 200: decoded answer larger than 64 MiB']);
    expect(inner.bytes).toBeLessThanOrEqual(64 * MIB);
    const { bytes } = inner;
    for (let i = 0; i < 10; i++) await new Promise((resolve) => setImmediate(resolve));
    expect(inner.bytes).toBe(bytes);
  });

  it('takes just 64 MiB', async () => {
    const inner = new Inner(false);
    const decoding = reader(inner);
    decoding.data(gzipSync(Buffer.alloc(64 * MIB)));
    decoding.end();
    await waitFor(() => inner.ends.length > 0, 'the end');
    expect(inner.ends).toEqual(['end']);
    expect(inner.bytes).toBe(64 * MIB);
  });

  it('says at once when the answer breaks off', async () => {
    const inner = new Inner();
    const decoding = reader(inner);
    decoding.data(gzipSync(text).subarray(0, 30));
    decoding.broken({ result: 'net_err', status: 200, reason: 'reset' });
    expect(inner.ends).toEqual(['net_err 200: reset']);
    decoding.end();
    await new Promise((resolve) => setImmediate(resolve));
    expect(inner.ends).toHaveLength(1);
  });

  it('holds the upstream while the client is slow, with bounded memory, and goes on afterwards', async () => {
    const inner = new Inner(false);
    inner.more = false;
    let resumed = 0;
    const decoding = reader(inner, 'gzip', () => resumed++);
    const bytes = gzipSync(randomBytes(4 * MIB));
    let wantsMore = true;
    let at = 0;
    while (wantsMore && at < bytes.length) {
      wantsMore = decoding.data(bytes.subarray(at, at + 16_384));
      at += 16_384;
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(wantsMore).toBe(false);
    expect(resumed).toBe(0);
    expect(inner.bytes).toBeLessThan(MIB);
    inner.more = true;
    decoding.drained();
    await waitFor(() => resumed > 0, 'the upstream goes on');
    decoding.data(bytes.subarray(at));
    decoding.end();
    await waitFor(() => inner.ends.length > 0, 'the end');
    expect(inner.bytes).toBe(4 * MIB);
  });

  it('gives nothing more to a reader that has failed the attempt: the client belongs to the next one', async () => {
    const host = new RecordingHost(200, { 'content-encoding': 'gzip' });
    const decoding = reader(new JoinAnswerReader(host, null, false));
    const first = 'data: {"choices":[{"index":0,"delta":{"content":"half"}}]}\n\n';
    const tooLarge = `data: ${'x'.repeat(17 * MIB)}\n\n`;
    decoding.data(gzipSync(`${first}${tooLarge}${first}`));
    decoding.end();
    await waitFor(() => host.verdicts.length > 0, 'a verdict');
    for (let i = 0; i < 50; i++) await new Promise((resolve) => setTimeout(resolve, 2));
    expect(host.sink.calls).toEqual([]);
    expect(host.verdicts.filter((verdict) => verdict !== 'fail net_err')).toEqual([]);
  });

  it('lets no error of the reader behind it out into the process', async () => {
    const inner = new Inner();
    inner.data = () => {
      throw new Error('reader');
    };
    const uncaught = once(process, 'uncaughtException').then(([error]) => String(error));
    const decoding = reader(inner);
    let told: unknown;
    try {
      decoding.data(gzipSync(text));
      decoding.end();
      told = await Promise.race([
        uncaught,
        waitFor(() => inner.ends.length > 0, 'the end').then(() => 'broken'),
      ]);
    } catch (error) {
      told = String(error);
    }
    expect(told).toBe('broken');
  });
});
