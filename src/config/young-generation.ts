/** Of Node, in MiB for each of two halves. */
const SEMI_SPACE_FLAG = '--max-semi-space-size';
/** Less than this makes bodies of a megabyte twice as expensive; more costs memory for each open stream (docs/performance.md). */
const SEMI_SPACE_MIB = 8;

/**
 * Starts this very process anew with a bounded young generation (same process id, same open files), unless the caller chose
 * heap options of its own. Thousands of open streams are long-lived, small and mostly idle: with Node's default of 16 MiB
 * and more each keeps about twice as much memory. Returns where nothing is to be done or the system cannot do it.
 */
export function restartWithSmallYoungGeneration(): void {
  const chosen = [...process.execArgv, process.env['NODE_OPTIONS'] ?? ''].join(' ').replaceAll('_', '-');
  // Trap: a parent that talks to this process (a watcher, a debugger) would lose it.
  if (/semi-space|--inspect|--prof/.test(chosen) || process.connected || process.execve === undefined) return;
  const flags = [`${SEMI_SPACE_FLAG}=${SEMI_SPACE_MIB}`, ...process.execArgv];
  const script = process.argv[1];
  if (script === undefined || process.platform === 'win32') return;
  process.execve(process.execPath, [process.execPath, ...flags, script, ...process.argv.slice(2)]);
}
