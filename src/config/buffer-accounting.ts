import { setFlagsFromString } from 'node:v8';

const FLAG = '--external-memory-accounted-in-global-limit';
/**
 * What a collection left may double before the next one. V8's own factor lets a small heap grow so little that one body of
 * 10 MB is enough.
 */
const GROWTH_FLAG = '--heap-growing-percent=100';
/** The first V8 that is known to have it. An unknown flag is a line on standard error, nothing worse. */
const OLDEST_MAJOR = 13;
const OLDEST_MINOR = 6;

/** True where this V8 can count buffers as a part of the heap. */
export function canCountBuffers(v8Version: string): boolean {
  const [major = 0, minor = 0] = v8Version.split('.').map(Number);
  return major > OLDEST_MAJOR || (major === OLDEST_MAJOR && minor >= OLDEST_MINOR);
}

/**
 * Lets V8 weigh what buffers hold together with the heap. By default it marks the whole heap for every 64 MiB of buffers
 * that were made, dead or not, which is every few requests where bodies are large (docs/performance.md); so it collects
 * the young ones first, and that is nearly always enough. Trap: with another flag V8 refuses the compiled code of Node's own
 * modules and of the compile cache, and compiles what is loaded from then on anew; so this comes when all is loaded.
 */
export function countBuffersWithTheHeap(): void {
  if (!canCountBuffers(process.versions.v8)) return;
  setFlagsFromString(FLAG);
  setFlagsFromString(GROWTH_FLAG);
}
