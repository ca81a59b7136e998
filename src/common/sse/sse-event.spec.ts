import { describe, expect, it, vi } from 'vitest';
import { SseEvent } from './sse-event.js';

const event = (text: string): SseEvent => new SseEvent(Buffer.from(text));

describe('SseEvent', () => {
  it('reads data in all its spellings', () => {
    expect(event('data: x\n\n').data).toBe('x');
    expect(event('data:x').data).toBe('x');
    expect(event('data:  x\r\n\r\n').data).toBe(' x');
    expect(event('data\n\n').data).toBe('');
    expect(event(': c\n\n').data).toBeUndefined();
    expect(event('database: x\n\n').data).toBeUndefined();
    expect(event('\ufeffdata: x\n\n').data).toBe('x');
    expect(event('id: 1\ndata: a\rdata:b\r\ndata: c\n\n').data).toBe('a\nb\nc');
    expect(SseEvent.of('a\nb').data).toBe('a\nb');
  });

  it('parses objects only', () => {
    expect(event('data: {"a":1}\n\n').json?.get('a')).toBe(1);
    expect(event('data: {"a":\ndata: 1}\n\n').json?.get('a')).toBe(1);
    for (const text of ['data: [1]\n\n', 'data: {"a"\n\n', 'data: [DONE]\n\n', ':\n\n', 'data:  \n\n']) {
      expect(event(text).json).toBeUndefined();
    }
  });

  it('keeps everything but the data when that is replaced', () => {
    const withData = (text: string, data: string): string =>
      event(text)
        .withData([Buffer.from(data)])
        .raw.toString();
    expect(withData('event: e\r\nid: 7\r\ndata:x\r\n: c\r\n\r\n', 'yy')).toBe(
      'event: e\r\nid: 7\r\ndata:yy\r\n: c\r\n\r\n',
    );
    expect(withData('data: a\nid: 7\ndata: b\n\n', 'y')).toBe('data: y\nid: 7\n\n');
    expect(withData('data: a\ndata: b', 'x\ny')).toBe('data: x\ndata: y\n');
    expect(withData('data: a\n\n', 'x\ny')).toBe('data: x\ndata: y\n\n');
    expect(withData('data\n\n', 'x')).toBe('data: x\n\n');
    expect(withData(': c\n\n', 'x')).toBe('data: x\n\n');
    expect(event('\ufeffdata: a\n\n').withoutByteOrderMark().raw.toString()).toBe('data: a\n\n');
  });

  it('makes nothing for each of its lines', () => {
    const lines = 100_000;
    const views = vi.spyOn(Buffer.prototype, 'subarray');
    const concat = vi.spyOn(Buffer, 'concat');
    try {
      const many = event(`data: {"a":\n${'data\nid: 1\n'.repeat(lines)}data: 1}\n\n`);
      expect(many.payload?.toString()).toBe(`{"a":${'\n'.repeat(lines + 1)}1}`);
      expect(many.json?.get('a')).toBe(1);
      expect(many.withData([Buffer.from('x')]).raw.toString()).toBe(`data: x\n${'id: 1\n'.repeat(lines)}\n`);
      expect(views.mock.calls.length).toBeLessThan(20);
      for (const [pieces] of concat.mock.calls) expect(pieces.length).toBeLessThan(20);
    } finally {
      vi.restoreAllMocks();
    }
  });
});
