import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { append, TagScanner, type TextPiece } from './tag-scanner.js';

function scan(texts: readonly string[]): TextPiece[] {
  const scanner = new TagScanner();
  const all = [...texts.flatMap((text) => scanner.push(text)), ...scanner.flush()];
  const joined: TextPiece[] = [];
  for (const piece of all) append(joined, piece.thought, piece.text);
  return joined;
}

const outside = (text: string): TextPiece => ({ thought: false, text });
const inside = (text: string): TextPiece => ({ thought: true, text });

/** The rules word by word, on the whole text. */
function reference(text: string): TextPiece[] {
  const pieces: TextPiece[] = [];
  let thought = false;
  for (let i = 0; i < text.length;) {
    const tag = thought ? '</think>' : '<think>';
    if (text.startsWith(tag, i)) {
      thought = !thought;
      i += tag.length;
    } else append(pieces, thought, text[i++]!);
  }
  return pieces;
}

describe('TagScanner', () => {
  it('gives the same pieces at every cut', () => {
    const text = 'ab<think>cd</think>e</think>f<think>g<think>h</think>i<thin';
    const whole = [
      outside('ab'),
      inside('cd'),
      outside('e</think>f'),
      inside('g<think>h'),
      outside('i<thin'),
    ];
    for (let i = 0; i <= text.length; i++) {
      for (let j = i; j <= text.length; j++) {
        expect(scan([text.slice(0, i), text.slice(i, j), text.slice(j)])).toEqual(whole);
      }
    }
  });

  it('holds a tail only as long as it may become the tag of its state', () => {
    const scanner = new TagScanner();
    expect(scanner.push('a <thi')).toEqual([outside('a ')]);
    expect([scanner.held, scanner.inside]).toEqual(['<thi', false]);
    expect(scanner.push('s')).toEqual([outside('<this')]);
    expect(scanner.push('</thi')).toEqual([outside('</thi')]);
    expect(scanner.push('<think>x<th')).toEqual([inside('x<th')]);
    expect(scanner.inside).toBe(true);
    expect(scanner.push('</')).toEqual([]);
    expect(scanner.flush()).toEqual([inside('</')]);
    expect(scanner.held).toBe('');
  });

  it('agrees with the rules read word by word, whatever the text and its pieces', () => {
    const fragment = fc.constantFrom(
      '<think>',
      '</think>',
      '<',
      '</',
      '<th',
      'ink>',
      'k>',
      '<Think>',
      'a',
      '>',
      '😀',
    );
    fc.assert(
      fc.property(fc.array(fc.array(fragment, { maxLength: 4 }).map((list) => list.join(''))), (texts) => {
        expect(scan(texts)).toEqual(reference(texts.join('')));
      }),
      { numRuns: 500 },
    );
  });
});
