import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { AnswerReader } from './answer-reader.js';
import { kindByFirstByte, SniffingReader } from './sniffing.reader.js';

function sniff(chunks: readonly Buffer[]): { kinds: string[]; bytes: Buffer; ends: string[] } {
  const kinds: string[] = [];
  const got: Buffer[] = [];
  const ends: string[] = [];
  const inner: AnswerReader = {
    data: (chunk) => got.push(chunk) > 0,
    end: () => ends.push('end'),
    broken: () => ends.push('broken'),
  };
  const reader = new SniffingReader(
    (kind) => {
      kinds.push(kind);
      return inner;
    },
    () => ends.push('broken before'),
  );
  for (const chunk of chunks) reader.data(chunk);
  reader.end();
  return { kinds, bytes: Buffer.concat(got), ends };
}

describe('SniffingReader', () => {
  it.each([
    ['{"a":1}', 'json'],
    [' \r\n\t[1]', 'json'],
    ['"text"', 'json'],
    ['-1', 'json'],
    ['true', 'json'],
    ['null', 'json'],
    ['data: x\n\n', 'sse'],
    ['\n\n: comment\n\n', 'sse'],
    ['event: x\n', 'sse'],
    ['id: 1\n', 'sse'],
    ['retry: 1\n', 'sse'],
    ['\ufeffdata: x\n\n', 'sse'],
    ['\ufeff{"a":1}', 'json'],
    ['<html>', 'other'],
    ['Bad gateway', 'other'],
    ['', 'empty'],
    [' \n', 'empty'],
  ])('tells %j by its first byte: %s', (text, kind) => {
    expect(sniff([Buffer.from(text)])).toEqual({ kinds: [kind], bytes: Buffer.from(text), ends: ['end'] });
  });

  it('comes to the same wherever the answer is cut, and loses no byte', () => {
    const texts = ['  {"a":1}', '\ufeff{"a":1}', '\ufeff data: x\n\n', '\r\n: c\n\n', '<p>', '  '];
    fc.assert(
      fc.property(fc.constantFrom(...texts), fc.array(fc.nat(20), { maxLength: 5 }), (text, cuts) => {
        const bytes = Buffer.from(text);
        const places = [0, ...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length].toSorted(
          (a, b) => a - b,
        );
        const chunks = places
          .slice(1)
          .map((end, i) => bytes.subarray(places[i], end))
          .filter(({ length }) => length > 0);
        expect(sniff(chunks)).toEqual(sniff([bytes]));
      }),
    );
  });

  it('says so where the answer breaks before it could be told', () => {
    const broken: string[] = [];
    const reader = new SniffingReader(
      () => {
        throw new Error('not reached');
      },
      ({ reason }) => broken.push(reason),
    );
    reader.data(Buffer.from('  '));
    reader.broken({ result: 'net_err', reason: 'reset' });
    expect(broken).toEqual(['reset']);
  });

  it('does not hold white space without end', () => {
    const broken: string[] = [];
    const kinds: string[] = [];
    const inner: AnswerReader = { data: () => true, end: () => {}, broken: () => {} };
    const reader = new SniffingReader(
      (kind) => {
        kinds.push(kind);
        return inner;
      },
      ({ reason }) => broken.push(reason),
    );
    const blank = Buffer.alloc(1024 * 1024, 0x20);
    for (let i = 0; i < 65 && broken.length + kinds.length === 0; i++) reader.data(blank);
    expect(broken.length + kinds.length).toBe(1);
  });

  it('tells no kind but the three', () => {
    for (let byte = 0; byte < 256; byte++) expect(['json', 'sse', 'other']).toContain(kindByFirstByte(byte));
  });
});
