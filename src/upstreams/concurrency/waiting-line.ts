/** What a line must know of somebody who waits. */
export interface Standing {
  /** Whoever shares it is served in order of arrival; different ones take turns. */
  readonly consumer: string;
  /** −1000…1000, higher first. */
  readonly priority: number;
  /** Order of arrival: a number from the line's own sequence. */
  readonly order: number;
  /** Waiting that long lifts by one occupied priority; 0 = never. */
  readonly ageingMs: number;
  /** Time waited so far, over all its waits. */
  waitedMs(now: number): number;
}

/** Numbers that only grow: order of arrival and turns of consumers come from one source, so that they compare. */
export class Sequence {
  #last = 0;

  next(): number {
    return ++this.#last;
  }
}

/** A place in one line. */
export class Ticket<W extends Standing> {
  /** How often ageing has lifted it. */
  lifts = 0;
  turn: Turn<W> | null = null;

  constructor(readonly waiter: W) {}

  /** With what ageing gave it. */
  get priority(): number {
    return this.turn?.level.priority ?? this.waiter.priority;
  }
}

/** The waiting requests of one consumer at one priority, and when it is that consumer's turn. */
interface Turn<W extends Standing> {
  readonly level: Level<W>;
  /** Null where it is the kept place of one request that came back. */
  readonly consumer: string | null;
  at: number;
  /** By order of arrival. */
  readonly tickets: Ticket<W>[];
}

interface Level<W extends Standing> {
  readonly priority: number;
  /** By `at`: the first is served next. */
  readonly turns: Turn<W>[];
  readonly byConsumer: Map<string, Turn<W>>;
}

/**
 * Who is served next where many wait for the same slots: higher priority first, inside it consumers by turns, inside a
 * consumer by arrival. A consumer's turn comes after those of all who waited before it; having been idle gives no credit.
 * Pure order: knows no slots, no timers, and costs nothing while nobody is served.
 */
export class WaitingLine<W extends Standing> {
  /** By falling priority; none is empty. */
  readonly #levels: Level<W>[] = [];
  #size = 0;
  /** Members whom time can lift. */
  #ageing = 0;

  constructor(private readonly sequence: Sequence) {}

  get size(): number {
    return this.#size;
  }

  /** `turn`: when it was served before (see {@link serve}); its old place is kept apart from its consumer's turn. */
  join(waiter: W, turn: number | null = null): Ticket<W> {
    const ticket = new Ticket(waiter);
    this.#size++;
    if (waiter.ageingMs > 0) this.#ageing++;
    const level = this.#level(waiter.priority);
    if (turn === null) this.#line(ticket, level);
    else this.#insertTurn({ level, consumer: null, at: turn, tickets: [] }, ticket);
    return ticket;
  }

  /** It is not served here. */
  leave(ticket: Ticket<W>): void {
    const { turn } = ticket;
    if (turn === null) return;
    this.#size--;
    if (ticket.waiter.ageingMs > 0) this.#ageing--;
    this.#unline(ticket, turn);
  }

  /** It is served here: its consumer's next turn comes after everybody else's. Returns the turn that it took. */
  serve(ticket: Ticket<W>): number {
    const { turn } = ticket;
    if (turn === null) throw new Error('somebody was served who had left the line');
    this.leave(ticket);
    const { at, level } = turn;
    if (turn.consumer !== null && turn.tickets.length > 0) {
      remove(level.turns, turn, turnAt);
      turn.at = this.sequence.next();
      level.turns.push(turn);
    }
    return at;
  }

  /** Lifts whom its waiting has earned it: one occupied priority for each whole `ageingMs`. */
  age(now: number): void {
    if (this.#ageing === 0 || this.#levels.length < 2) return;
    const occupied = this.#levels.slice();
    const lifted: { readonly ticket: Ticket<W>; readonly to: number }[] = [];
    for (const [i, level] of occupied.entries()) {
      if (i === 0) continue;
      for (const { tickets } of level.turns) {
        for (const ticket of tickets) {
          const due = liftsDue(ticket, now);
          if (due === 0) continue;
          const steps = Math.min(due, i);
          ticket.lifts += steps;
          lifted.push({ ticket, to: (occupied[i - steps] as Level<W>).priority });
        }
      }
    }
    // By number: the level may have emptied meanwhile, and is made again then.
    for (const { ticket, to } of lifted) this.#lift(ticket, this.#level(to));
  }

  /** Who is served first, if the slot suits it. */
  get first(): Ticket<W> | undefined {
    return this.#levels[0]?.turns[0]?.tickets[0];
  }

  /** Everybody, in the order in which they are served if nobody comes and the slot suits all of them. */
  *inOrder(): Generator<Ticket<W>> {
    for (const { turns } of this.#levels) for (const { tickets } of turns) yield* tickets;
  }

  /** The same as a list, for whoever serves or sends away while going through it. */
  everybody(): Ticket<W>[] {
    return [...this.inOrder()];
  }

  /** How many are before it, if it were of this priority and came with this number: by arrival, not by turns. */
  ahead(priority: number, order: number): number {
    let count = 0;
    for (const level of this.#levels) {
      if (level.priority < priority) break;
      for (const { tickets } of level.turns) {
        count += level.priority > priority ? tickets.length : lowerBound(tickets, order, orderOf);
      }
    }
    return count;
  }

  #lift(ticket: Ticket<W>, to: Level<W>): void {
    const { turn } = ticket;
    if (turn === null) return;
    this.#unline(ticket, turn);
    if (turn.consumer === null) this.#insertTurn({ ...turn, level: to, tickets: [] }, ticket);
    else this.#line(ticket, to);
  }

  #line(ticket: Ticket<W>, level: Level<W>): void {
    const { consumer, order } = ticket.waiter;
    const turn = level.byConsumer.get(consumer);
    if (turn === undefined) {
      // By its arrival: who was lifted waited longer than those who came to the higher priority meanwhile.
      const own: Turn<W> = { level, consumer, at: order, tickets: [] };
      level.byConsumer.set(consumer, own);
      this.#insertTurn(own, ticket);
    } else {
      ticket.turn = turn;
      insert(turn.tickets, ticket, orderOf);
    }
  }

  #insertTurn(turn: Turn<W>, first: Ticket<W>): void {
    first.turn = turn;
    turn.tickets.push(first);
    insert(turn.level.turns, turn, turnAt);
  }

  #unline(ticket: Ticket<W>, turn: Turn<W>): void {
    const { consumer, level, tickets } = turn;
    remove(tickets, ticket, orderOf);
    ticket.turn = null;
    if (tickets.length > 0) return;
    remove(level.turns, turn, turnAt);
    if (consumer !== null) level.byConsumer.delete(consumer);
    if (level.turns.length === 0) remove(this.#levels, level, levelAt);
  }

  #level(priority: number): Level<W> {
    const index = lowerBound(this.#levels, -priority, levelAt);
    const known = this.#levels[index];
    if (known?.priority === priority) return known;
    const level: Level<W> = { priority, turns: [], byConsumer: new Map() };
    this.#levels.splice(index, 0, level);
    return level;
  }
}

function liftsDue<W extends Standing>({ lifts, waiter }: Ticket<W>, now: number): number {
  if (waiter.ageingMs === 0) return 0;
  return Math.max(0, Math.floor(waiter.waitedMs(now) / waiter.ageingMs) - lifts);
}

const orderOf = ({ waiter }: { readonly waiter: Standing }): number => waiter.order;
const turnAt = ({ at }: { readonly at: number }): number => at;
const levelAt = ({ priority }: { readonly priority: number }): number => -priority;

/** Index of the first member of a sorted list whose key is not below `key`. */
function lowerBound<T>(list: readonly T[], key: number, keyOf: (member: T) => number): number {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (keyOf(list[middle] as T) < key) low = middle + 1;
    else high = middle;
  }
  return low;
}

function insert<T>(list: T[], member: T, keyOf: (member: T) => number): void {
  const key = keyOf(member);
  const last = list.at(-1);
  if (last === undefined || keyOf(last) < key) list.push(member);
  else list.splice(lowerBound(list, key, keyOf), 0, member);
}

function remove<T>(list: T[], member: T, keyOf: (member: T) => number): void {
  let index = lowerBound(list, keyOf(member), keyOf);
  // Keys may be equal: a request that came back keeps the number of the turn it had.
  while (index < list.length && list[index] !== member) index++;
  // The first leaves most often, and `shift` moves nothing.
  if (index === 0) list.shift();
  else if (index < list.length) list.splice(index, 1);
}
