import type { Socket } from 'node:net';

let turn = 0;
let isCounted = false;
const corked: Socket[] = [];

/** A number that changes with each turn of the event loop in which somebody asks: what one read brought is one turn. */
export function currentTurn(): number {
  if (!isCounted) {
    isCounted = true;
    process.nextTick(end);
  }
  return turn;
}

/** What is written to the socket from now on leaves with the end of the {@link currentTurn}, in few pieces. */
export function gatherForTurn(socket: Socket): void {
  socket.cork();
  corked.push(socket);
}

function end(): void {
  isCounted = false;
  turn++;
  for (const socket of corked.splice(0)) socket.uncork();
}
