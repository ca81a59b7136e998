import { setFlagsFromString } from 'node:v8';

/**
 * Lets the main thread collect the young generation by itself. It is small here and little in it survives: some 1 ms of work.
 * V8 shares that out among helper threads and waits for them, which costs more than it saves where cores are few, as in a
 * container with a limit of CPU (docs/performance.md). Old objects go on being marked by helpers. Trap: only when all is loaded, as
 * for the other flag (`buffer-accounting.ts`).
 */
export function scavengeAlone(): void {
  setFlagsFromString('--no-parallel-scavenge');
}
