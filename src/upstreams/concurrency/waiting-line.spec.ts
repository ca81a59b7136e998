import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Sequence, type Standing, type Ticket, WaitingLine } from './waiting-line.js';

interface Waiting extends Standing {
  readonly name: string;
}

/** A line, and everybody's names in the order in which they would be served. */
function setUp() {
  const sequence = new Sequence();
  const line = new WaitingLine<Waiting>(sequence);
  const tickets = new Map<string, Ticket<Waiting>>();
  const comes = (name: string, options: Partial<Waiting> = {}) => {
    const waiter = {
      name,
      consumer: name.charAt(0),
      priority: 0,
      order: sequence.next(),
      ageingMs: 0,
      waitedMs: (now: number) => now,
      ...options,
    };
    tickets.set(name, line.join(waiter));
    return waiter;
  };
  const all = (): string[] => [...line.inOrder()].map(({ waiter }) => waiter.name);
  const ticket = (name: string) => tickets.get(name) as Ticket<Waiting>;
  /** Serves until nobody is left. */
  const drained = (): string[] => {
    const names: string[] = [];
    for (let first = line.inOrder().next(); !first.done; first = line.inOrder().next()) {
      names.push(first.value.waiter.name);
      line.serve(first.value);
    }
    return names;
  };
  return { line, sequence, comes, all, ticket, drained };
}

describe('WaitingLine', () => {
  it('serves one consumer in order of arrival', () => {
    const { comes, drained } = setUp();
    for (const name of ['a1', 'a2', 'a3']) comes(name);
    expect(drained()).toEqual(['a1', 'a2', 'a3']);
  });

  it('serves higher priorities first, whenever they came', () => {
    const { comes, drained } = setUp();
    comes('a1', { priority: -1000 });
    comes('b1');
    comes('c1', { priority: 1000 });
    comes('b2');
    expect(drained()).toEqual(['c1', 'b1', 'b2', 'a1']);
  });

  it('gives consumers of one priority their turns, one request each', () => {
    const { comes, drained } = setUp();
    for (const name of ['a1', 'a2', 'a3', 'b1', 'b2', 'c1']) comes(name);
    expect(drained()).toEqual(['a1', 'b1', 'c1', 'a2', 'b2', 'a3']);
  });

  it('gives no credit for having been idle', () => {
    const { line, comes, ticket, drained } = setUp();
    for (const name of ['a1', 'a2', 'a3', 'a4']) comes(name);
    line.serve(ticket('a1'));
    line.serve(ticket('a2'));
    for (const name of ['b1', 'b2', 'b3']) comes(name);
    expect(drained()).toEqual(['a3', 'b1', 'a4', 'b2', 'b3']);
  });

  it('keeps the turns of each priority apart', () => {
    const { comes, drained } = setUp();
    comes('a1', { priority: 1 });
    comes('a2');
    comes('b1');
    comes('b2', { priority: 1 });
    expect(drained()).toEqual(['a1', 'b2', 'a2', 'b1']);
  });

  it('gives who comes back its old place, and takes its consumer no turn for it', () => {
    const { line, comes, ticket, all, drained } = setUp();
    const first = comes('a1');
    for (const name of ['a2', 'b1', 'c1']) comes(name);
    const turn = line.serve(ticket('a1'));
    expect(all()).toEqual(['b1', 'c1', 'a2']);
    line.serve(ticket('b1'));
    line.join(first, turn);
    expect(all()).toEqual(['a1', 'c1', 'a2']);
    expect(drained()).toEqual(['a1', 'c1', 'a2']);
  });

  it('puts one that left before others of its consumer back where its arrival belongs', () => {
    const { line, comes, ticket, all } = setUp();
    const first = comes('a1');
    for (const name of ['b1', 'a2']) comes(name);
    line.leave(ticket('a1'));
    expect(all()).toEqual(['a2', 'b1']);
    line.join(first);
    expect(all()).toEqual(['a1', 'a2', 'b1']);
  });

  it('forgets who leaves, once', () => {
    const { line, comes, ticket, all } = setUp();
    for (const name of ['a1', 'a2', 'b1']) comes(name);
    line.leave(ticket('a1'));
    line.leave(ticket('a1'));
    expect([line.size, all()]).toEqual([2, ['a2', 'b1']]);
    expect(() => line.serve(ticket('a1'))).toThrow('had left');
  });

  it('counts who is ahead by arrival', () => {
    const { line, comes } = setUp();
    comes('a1', { priority: 5 });
    const a2 = comes('a2');
    const b1 = comes('b1');
    comes('c1', { priority: -1 });
    expect(line.ahead(0, a2.order)).toBe(1);
    expect(line.ahead(0, b1.order)).toBe(2);
    expect(line.ahead(0, Infinity)).toBe(3);
    expect(line.ahead(-1000, Infinity)).toBe(4);
    expect(line.ahead(1000, Infinity)).toBe(0);
  });
});

describe('ageing', () => {
  const patient = { ageingMs: 10 };

  it('lifts to the next occupied priority, one for each period, and no further', () => {
    const { line, comes, drained, all } = setUp();
    comes('a1', { ...patient, priority: -7 });
    comes('b1', { priority: 3 });
    comes('c1', { priority: 900 });
    line.age(9.9);
    expect(all()).toEqual(['c1', 'b1', 'a1']);
    line.age(10);
    // Before b1: it has waited longer.
    expect(all()).toEqual(['c1', 'a1', 'b1']);
    line.age(20);
    expect(all()).toEqual(['a1', 'c1', 'b1']);
    line.age(1000);
    expect(drained()).toEqual(['a1', 'c1', 'b1']);
  });

  it('counts what was waited before anybody of a higher priority came', () => {
    const { line, comes, all } = setUp();
    comes('a1', patient);
    line.age(500);
    comes('b1', { priority: 1 });
    line.age(510);
    expect(all()).toEqual(['a1', 'b1']);
  });

  it('lifts a whole crowd behind each other', () => {
    const { line, comes, drained } = setUp();
    for (const name of ['a1', 'a2', 'b1']) comes(name, patient);
    for (const name of ['c1', 'c2', 'c3']) comes(name, { priority: 10 });
    line.age(10);
    expect(drained()).toEqual(['a1', 'b1', 'c1', 'a2', 'c2', 'c3']);
  });

  it('survives that a priority empties while others are lifted into it', () => {
    const { line, comes, all } = setUp();
    comes('a1', { ...patient, priority: 1 });
    comes('b1', { ...patient, priority: 0 });
    comes('c1', { priority: 2 });
    line.age(10);
    expect(all()).toEqual(['a1', 'c1', 'b1']);
    expect(line.ahead(1, 0)).toBe(2);
  });
});

describe('WaitingLine against a plain list', () => {
  const step = fc.oneof(
    fc.record({
      kind: fc.constant('comes' as const),
      consumer: fc.constantFrom('a', 'b', 'c'),
      priority: fc.constantFrom(-5, 0, 0, 7),
      ageingMs: fc.constantFrom(0, 10),
    }),
    fc.record({ kind: fc.constant('serve' as const), skip: fc.nat(3) }),
    fc.record({ kind: fc.constant('back' as const), which: fc.nat() }),
    fc.record({ kind: fc.constant('leave' as const), which: fc.nat() }),
    fc.record({ kind: fc.constant('wait' as const), ms: fc.integer({ min: 0, max: 15 }) }),
  );

  it('serves in the same order, whatever happens', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
        const sequence = new Sequence();
        const line = new WaitingLine<Waiting>(sequence);
        const naive = new NaiveLine(sequence);
        let now = 0;
        let count = 0;
        const waiting: Ticket<Waiting>[] = [];
        const served: { waiter: Waiting; turn: number }[] = [];
        for (const one of steps) {
          if (one.kind === 'comes') {
            const since = now;
            const { ageingMs, consumer, priority } = one;
            const waitedMs = (at: number) => at - since;
            const name = `w${count++}`;
            const waiter = { name, consumer, priority, ageingMs, order: sequence.next(), waitedMs };
            waiting.push(line.join(waiter));
            naive.join(waiter, null);
          } else if (one.kind === 'serve') {
            line.age(now);
            naive.age(now);
            const ticket = [...line.inOrder()][one.skip];
            if (ticket === undefined) continue;
            expect(ticket.waiter.name).toBe(naive.order()[one.skip]?.waiter.name);
            const turn = line.serve(ticket);
            // Both take the same number: the naive one after the real one.
            naive.serve(ticket.waiter, sequenceNow(sequence));
            waiting.splice(waiting.indexOf(ticket), 1);
            served.push({ waiter: ticket.waiter, turn });
          } else if (one.kind === 'back' && served.length > 0) {
            const [back] = served.splice(one.which % served.length, 1);
            if (back === undefined) continue;
            waiting.push(line.join(back.waiter, back.turn));
            naive.join(back.waiter, back.turn);
          } else if (one.kind === 'leave' && waiting.length > 0) {
            const [ticket] = waiting.splice(one.which % waiting.length, 1);
            if (ticket === undefined) continue;
            line.leave(ticket);
            naive.leave(ticket.waiter);
          } else if (one.kind === 'wait') now += one.ms;
          expect([...line.inOrder()].map(({ waiter }) => waiter.name)).toEqual(
            naive.order().map(({ waiter }) => waiter.name),
          );
          expect(line.size).toBe(waiting.length);
        }
      }),
      { numRuns: 400 },
    );
  });
});

/** The number that was given last. */
function sequenceNow(sequence: Sequence): number {
  return sequence.next() - 1;
}

interface NaivePlace {
  readonly waiter: Waiting;
  level: number;
  lifts: number;
  /** Null: its consumer's turn counts. */
  readonly ownTurn: number | null;
}

/** The same rules over one list that is sorted anew each time. */
class NaiveLine {
  #places: NaivePlace[] = [];
  readonly #turns = new Map<string, number>();

  constructor(private readonly sequence: Sequence) {}

  join(waiter: Waiting, ownTurn: number | null): void {
    this.#put({ waiter, level: waiter.priority, lifts: 0, ownTurn });
  }

  leave(waiter: Waiting): void {
    const place = this.#places.find((one) => one.waiter === waiter);
    this.#places = this.#places.filter((one) => one !== place);
    if (place !== undefined) this.#tidy(place);
  }

  serve(waiter: Waiting, number: number): void {
    const place = this.#places.find((one) => one.waiter === waiter);
    this.leave(waiter);
    if (place === undefined || place.ownTurn !== null) return;
    const key = keyOf(place);
    if (this.#turns.has(key)) this.#turns.set(key, number);
  }

  age(now: number): void {
    const levels = [...new Set(this.#places.map(({ level }) => level))].toSorted((a, b) => b - a);
    const moves = this.#places.flatMap((place) => {
      const { ageingMs } = place.waiter;
      const due = ageingMs === 0 ? 0 : Math.floor(place.waiter.waitedMs(now) / ageingMs) - place.lifts;
      const steps = Math.min(due, levels.indexOf(place.level));
      return steps > 0 ? [{ place, steps, to: levels[levels.indexOf(place.level) - steps] as number }] : [];
    });
    // Highest first, each level in the order in which it would be served.
    const order = this.order();
    moves.sort((a, b) => order.indexOf(a.place) - order.indexOf(b.place));
    for (const { place, steps, to } of moves) {
      this.#places = this.#places.filter((one) => one !== place);
      this.#tidy(place);
      this.#put({ ...place, level: to, lifts: place.lifts + steps });
    }
  }

  order(): NaivePlace[] {
    const turnOf = (place: NaivePlace) => place.ownTurn ?? (this.#turns.get(keyOf(place)) as number);
    return this.#places.toSorted(
      (a, b) => b.level - a.level || turnOf(a) - turnOf(b) || a.waiter.order - b.waiter.order,
    );
  }

  #put(place: NaivePlace): void {
    this.#places.push(place);
    const key = keyOf(place);
    if (place.ownTurn === null && !this.#turns.has(key)) this.#turns.set(key, place.waiter.order);
  }

  /** A consumer without anybody in line has no turn. */
  #tidy(gone: NaivePlace): void {
    const key = keyOf(gone);
    if (!this.#places.some((one) => one.ownTurn === null && keyOf(one) === key)) this.#turns.delete(key);
  }
}

function keyOf({ level, waiter }: NaivePlace): string {
  return `${level}/${waiter.consumer}`;
}
