import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { SseEvent } from '../common/sse/sse-event.js';
import { SseDecoder, SseEventTooLargeError } from '../common/sse/sse-decoder.js';
import type { StreamObserver, StreamTransform } from '../contracts/stream.js';
import { GuardedTransform } from './guarded-transform.js';
import { StreamPipeline } from './stream-pipeline.js';

class Recorder implements StreamObserver {
  readonly seen: string[] = [];
  constructor(readonly needles: readonly string[] | null) {}
  observe(event: SseEvent): void {
    this.seen.push(event.data ?? '');
  }
}

/** Doubles events that hold its needle, and holds the last one back. */
class Doubler implements StreamTransform {
  #held: SseEvent | null = null;
  calls = 0;
  constructor(private readonly needle: readonly string[]) {}
  get needles(): readonly string[] | null {
    return this.#held === null ? this.needle : null;
  }
  push(event: SseEvent, emit: (event: SseEvent) => void): void {
    this.calls++;
    this.flush(emit);
    if (event.data?.includes(this.needle[0]!)) this.#held = event;
    else emit(event);
  }
  flush(emit: (event: SseEvent) => void): void {
    if (this.#held === null) return;
    for (let i = 0; i < 2; i++) emit(SseEvent.of(this.#held.data!));
    this.#held = null;
  }
  whole(): void {}
}

interface Run {
  readonly sent: Buffer;
  readonly midEvents: boolean[];
}

function run(pipeline: StreamPipeline, chunks: readonly Buffer[]): Run {
  const sent: Buffer[] = [];
  const midEvents: boolean[] = [];
  for (const chunk of chunks) {
    sent.push(...[pipeline.push(chunk) ?? []].flat());
    midEvents.push(pipeline.midEvent);
  }
  sent.push(...pipeline.end());
  return { sent: Buffer.concat(sent), midEvents };
}

function cut(bytes: Buffer, cuts: readonly number[]): Buffer[] {
  const places = [...cuts.map((c) => c % (bytes.length + 1)), 0, bytes.length].sort((a, b) => a - b);
  return places.slice(1).map((end, i) => bytes.subarray(places[i], end));
}

const stream = fc
  .array(fc.constantFrom('\n', '\r', '\r\n', '\n\n', '\r\n\r\n', 'data: x', 'data: needle', ': c', 'é'), {
    maxLength: 16,
  })
  .map((list) => Buffer.from(list.join('')));
const cuts = fc.array(fc.nat(), { maxLength: 6 });
const text = (bytes: Buffer | readonly Buffer[] | null): string =>
  Buffer.concat([bytes ?? []].flat()).toString();

describe('StreamPipeline without transforms', () => {
  it('hands on the very chunks and shows observers the whole events they look for', () => {
    fc.assert(
      fc.property(stream, cuts, (bytes, places) => {
        const wanted: (string | undefined)[] = [];
        const note = (event: SseEvent): void => {
          if (event.raw.includes('needle')) wanted.push(event.data ?? '');
        };
        const decoder = new SseDecoder();
        decoder.push(bytes, note);
        decoder.end(note);
        const observer = new Recorder(['needle']);
        const pipeline = new StreamPipeline([], [observer]);
        for (const chunk of cut(bytes, places)) expect(pipeline.push(chunk)).toBe(chunk);
        expect(pipeline.end()).toEqual([]);
        expect(observer.seen).toEqual(wanted);
      }),
      { numRuns: 500 },
    );
  });

  it('finds a needle that is cut across chunks, at every cut', () => {
    const bytes = Buffer.from('data: a\n\ndata: the needle\n\ndata: b\n\n');
    for (let i = 0; i <= bytes.length; i++) {
      const observer = new Recorder(['needle']);
      run(new StreamPipeline([], [observer]), [bytes.subarray(0, i), bytes.subarray(i)]);
      expect(observer.seen).toEqual(['the needle']);
    }
  });

  it('knows whether the client stands inside an event', () => {
    const states = (...chunks: string[]): boolean[] =>
      run(
        new StreamPipeline([], []),
        chunks.map((chunk) => Buffer.from(chunk)),
      ).midEvents;
    expect(states('data: x', '\n', '\n')).toEqual([true, true, false]);
    expect(states('data: x\r', '\n', '\r', '\n')).toEqual([true, true, false, false]);
    expect(states('data: x\r\r', 'd')).toEqual([false, true]);
    expect(states('data: x\n\n: c\n\ndata: y\n')).toEqual([true]);
    expect(states('\n')).toEqual([false]);
  });

  it('passes an event too large to be kept, without showing it', () => {
    const observer = new Recorder(null);
    const pipeline = new StreamPipeline([], [observer], () => {}, 10);
    for (const chunk of ['data: 12345', '678\n\n', 'data: a\n\n']) pipeline.push(Buffer.from(chunk));
    expect(observer.seen).toEqual(['a']);
  });

  it('leaves an observer that throws out of the rest of the answer', () => {
    const errors: unknown[] = [];
    const broken: StreamObserver = {
      needles: null,
      observe: () => {
        throw new Error('broken');
      },
    };
    const other = new Recorder(null);
    const pipeline = new StreamPipeline([], [broken, other], (error) => errors.push(error));
    run(pipeline, [Buffer.from('data: a\n\ndata: b\n\n')]);
    expect([errors.length, other.seen]).toEqual([1, ['a', 'b']]);
  });
});

describe('StreamPipeline with transforms', () => {
  it('sends the same bytes however they are cut', () => {
    fc.assert(
      fc.property(stream, cuts, (bytes, places) => {
        const make = (): [StreamPipeline, Recorder] => {
          const observer = new Recorder(['needle']);
          return [new StreamPipeline([new Doubler(['needle']), new Doubler(['x'])], [observer]), observer];
        };
        const [one, seenByOne] = make();
        const [other, seenByOther] = make();
        const whole = run(one, [bytes]).sent.toString('latin1');
        // Where CR and LF of a blank line came apart the LF stands behind what was sent in between: not one event differs.
        const events = (sent: string): string[] => sent.split(/\r\n|\n|\r/).filter((line) => line !== '');
        expect(events(run(other, cut(bytes, places)).sent.toString('latin1'))).toEqual(events(whole));
        expect(seenByOther.seen).toEqual(seenByOne.seen);
      }),
      { numRuns: 500 },
    );
  });

  it('is the identity where no event holds a needle', () => {
    fc.assert(
      fc.property(stream, cuts, (bytes, places) => {
        const pipeline = new StreamPipeline([new Doubler(['absent'])], []);
        expect(run(pipeline, cut(bytes, places)).sent.equals(bytes)).toBe(true);
      }),
      { numRuns: 500 },
    );
  });

  it('loses no LF of a line end whose event is left out or held', () => {
    const left: StreamTransform = { needles: ['x'], push: () => {}, flush: () => {}, whole: () => {} };
    const late: StreamTransform = { ...left, flush: (next) => next(SseEvent.of('late')) };
    const chunks = ['data: a\r\n\r', '\ndata: x\r\n\r', '\n', 'data: b\r\n\r\n'].map((text) =>
      Buffer.from(text),
    );
    expect(run(new StreamPipeline([left], []), chunks).sent.toString()).toBe(
      'data: a\r\n\r\n\ndata: b\r\n\r\n',
    );
    expect(run(new StreamPipeline([late], []), chunks.slice(0, 1)).sent.toString()).toBe(
      'data: a\r\n\r\ndata: late\n\n',
    );
  });

  it('says what closes an event before one of ours', () => {
    const closing = (text: string, transforms: readonly StreamTransform[]): string => {
      const pipeline = new StreamPipeline(transforms, []);
      pipeline.push(Buffer.from(text));
      return Buffer.concat([...pipeline.closing]).toString();
    };
    const sees = (needle: string): StreamTransform => {
      return { needles: [needle], push: (event, next) => next(event), flush: () => {}, whole: () => {} };
    };
    for (const transforms of [[], [sees('absent')], [sees('a')]]) {
      expect(closing('data: a\r\n\r\n', transforms)).toBe('');
      expect(closing('data: a\r\n\r', transforms)).toBe('\n');
      expect(closing('data: a\n\n', transforms)).toBe('');
    }
    expect(closing('data: a\r\n', [])).toBe('\n\n');
  });

  it('does not cut up or copy a chunk that nobody asked for', () => {
    const transform = new Doubler(['needle']);
    const pipeline = new StreamPipeline([transform], []);
    const chunk = Buffer.from('data: a\r\n\r\ndata: b\r\n\r\n');
    expect(pipeline.push(chunk)).toBe(chunk);
    expect(transform.calls).toBe(0);
  });

  it('keeps the open end of a chunk and joins what lay side by side', () => {
    const pipeline = new StreamPipeline([new Doubler(['needle'])], []);
    const chunk = Buffer.from('data: a\n\ndata: b\n\nda');
    const sent = pipeline.push(chunk) as Buffer;
    expect([sent.toString(), sent.buffer]).toEqual(['data: a\n\ndata: b\n\n', chunk.buffer]);
    expect(pipeline.midEvent).toBe(false);
    expect(pipeline.push(Buffer.from('ta: c'))).toBeNull();
    expect(text(pipeline.push(Buffer.from('\n\n')))).toBe('data: c\n\n');
  });

  it('leads what one transform emits through the next one, needles asked for anew', () => {
    const pipeline = new StreamPipeline([new Doubler(['a']), new Doubler(['ab'])], []);
    const bytes = Buffer.from('data: ab\n\ndata: c\n\n');
    expect(text(pipeline.push(bytes))).toBe('data: ab\n\n'.repeat(4) + 'data: c\n\n');
  });

  it('ends an unterminated last event before it sends more, and drops a broken one', () => {
    const transform = (): StreamTransform => new Doubler(['needle']);
    const clean = new StreamPipeline([transform()], []);
    expect(clean.push(Buffer.from('data: needle'))).toBeNull();
    expect(text(clean.end())).toBe('data: needle\n\n'.repeat(2));
    const last = new StreamPipeline([transform(), transform()], []);
    last.push(Buffer.from('data: a\n\ndata: b'));
    expect([text(last.end()), last.midEvent]).toEqual(['data: b', true]);
    const broken = new StreamPipeline([transform()], []);
    broken.push(Buffer.from('data: needle\n\ndata: half'));
    expect([text(broken.end(true)), broken.midEvent]).toEqual(['data: needle\n\n'.repeat(2), false]);
  });

  it('counts a stream with a too large event as broken', () => {
    const pipeline = new StreamPipeline([new Doubler(['needle'])], [], () => {}, 10);
    expect(() => pipeline.push(Buffer.from('data: 123456789'))).toThrow(SseEventTooLargeError);
  });

  it('shows the pieces of a large answer to those that want them, and to one that throws no more', () => {
    const seen: string[] = [];
    const errors: unknown[] = [];
    const looking: StreamObserver = {
      needles: null,
      observe: () => {},
      piece: (bytes) => seen.push(String(bytes)),
    };
    const throwing: StreamObserver = {
      needles: null,
      observe: () => {},
      piece: () => {
        throw new Error('no');
      },
    };
    const pipeline = new StreamPipeline([], [throwing, new Recorder(null), looking], (error) =>
      errors.push(error),
    );
    for (const piece of ['{"a":', '1}']) pipeline.piece(Buffer.from(piece));
    expect([seen, errors.length]).toEqual([['{"a":', '1}'], 1]);
  });
});

describe('StreamPipeline with transforms of plugins', () => {
  const guarded = (inner: StreamTransform, noted: unknown[] = []) =>
    new GuardedTransform(inner, (error) => void noted.push(error));

  it('sends what they hold before [DONE], wherever the bytes are cut and whatever they look for', () => {
    const bytes = Buffer.from('data: a\n\ndata: needle\n\ndata: [DONE]\n\n: bye\n\n');
    fc.assert(
      fc.property(cuts, (places) => {
        const pipeline = new StreamPipeline([guarded(new Doubler(['needle']))], []);
        const { sent } = run(pipeline, cut(bytes, places));
        expect(sent.toString()).toBe('data: a\n\ndata: needle\n\ndata: needle\n\ndata: [DONE]\n\n: bye\n\n');
      }),
    );
  });

  it('loses nothing that comes behind [DONE]', () => {
    const pipeline = new StreamPipeline([guarded(new Doubler(['needle']))], []);
    const chunks = ['data: [DONE]\n\n', 'data: needle\n\n'].map((piece) => Buffer.from(piece));
    expect(run(pipeline, chunks).sent.toString()).toBe('data: [DONE]\n\ndata: needle\n\ndata: needle\n\n');
  });

  it('never sends a [DONE] whose flush failed, and notes the failure once', () => {
    const noted: unknown[] = [];
    const flush = (): never => {
      throw new Error('bang');
    };
    const inner: StreamTransform = {
      needles: [],
      push: (event, emit) => emit(event),
      flush,
      whole: () => {},
    };
    const pipeline = new StreamPipeline([guarded(inner, noted)], []);
    expect(() => pipeline.push(Buffer.from('data: a\n\ndata: [DONE]\n\n'))).toThrow();
    expect(text(pipeline.end(true))).toBe('data: a\n\n');
    expect(noted).toHaveLength(1);
  });

  it('an emitted [DONE] waits for the flush of those behind', () => {
    const early: StreamTransform = {
      needles: null,
      push: (event, emit) => (event.data === '[DONE]' ? undefined : emit(event)),
      flush: (emit) => emit(SseEvent.of('[DONE]')),
      whole: () => {},
    };
    const pipeline = new StreamPipeline([guarded(early), guarded(new Doubler(['needle']))], []);
    expect(run(pipeline, [Buffer.from('data: needle\n\ndata: [DONE]\n\n')]).sent.toString()).toBe(
      'data: needle\n\ndata: needle\n\ndata: [DONE]\n\n',
    );
  });
});
