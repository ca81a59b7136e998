// What the kernel knows about a process: CPU time of all its threads and children, memory, and who used a core.
import { readdirSync, readFileSync, existsSync } from 'node:fs';
import { spawnSync } from 'node:child_process';
import os from 'node:os';

const TICK_NS = 1e9 / Number(spawnSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }).stdout.trim() || 100);

export const cores = {
  load: Number(process.env.BENCH_LOAD_CORE ?? 0),
  proxy: Number(process.env.BENCH_PROXY_CORE ?? 1),
};

const hasTaskset = spawnSync('taskset', ['--version']).status === 0;
export const canPin = hasTaskset && os.availableParallelism() > Math.max(cores.load, cores.proxy);
/** Threads' run time in nanoseconds; without it only ticks of 10 ms are left. */
export const exactClock = existsSync('/proc/self/task') && /^\d{4,} /.test(read('/proc/self/schedstat'));

function read(path) {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return '';
  }
}

/** Pins this process (all threads); children started later inherit it. */
export function pinSelf() {
  if (canPin) spawnSync('taskset', ['-a', '-c', '-p', String(cores.load), String(process.pid)]);
}

/** The command that starts something on the proxy's core. */
export function onProxyCore(command, args) {
  return canPin ? ['taskset', ['-c', String(cores.proxy), command, ...args]] : [command, args];
}

function threads(pid) {
  try {
    return readdirSync(`/proc/${pid}/task`);
  } catch {
    return [];
  }
}

function tree(pid) {
  const children = threads(pid).flatMap((tid) => read(`/proc/${pid}/task/${tid}/children`).trim().split(' '));
  return [pid, ...children.filter((child) => child !== '').flatMap((child) => tree(Number(child)))];
}

function ticks(pid) {
  const text = read(`/proc/${pid}/stat`);
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) * TICK_NS || 0;
}

function threadRunTime(pid) {
  let sum = 0;
  for (const tid of threads(pid)) sum += Number(read(`/proc/${pid}/task/${tid}/schedstat`).split(' ', 1)[0]);
  return sum;
}

/** User + system time of a process and its children. `exactNs` misses threads that ended, `tickNs` does not. */
export function cpuOf(pid) {
  const pids = tree(pid);
  return {
    exactNs: pids.reduce((sum, each) => sum + threadRunTime(each), 0),
    tickNs: pids.reduce((sum, each) => sum + ticks(each), 0),
  };
}

/** CPU between two readings; the exact one unless threads ended in between, which the ticks show. */
export function cpuBetween(before, after) {
  const exact = after.exactNs - before.exactNs;
  const byTicks = after.tickNs - before.tickNs;
  return exactClock && exact >= byTicks * 0.97 - 3 * TICK_NS ? exact : byTicks;
}

/** Time that a core was busy or taken by the hypervisor, in ns. */
export function coreBusyNs(core) {
  const line = read('/proc/stat').match(new RegExp(`^cpu${core} (.*)$`, 'm'))?.[1];
  if (line === undefined) return 0;
  const [user, nice, system, , , irq, softirq, steal] = line.split(' ').map(Number);
  return (user + nice + system + irq + softirq + steal) * TICK_NS;
}

/** Memory in kB: `VmRSS` now, `VmHWM` at its peak. */
export function memoryOf(pid, field = 'VmRSS') {
  return tree(pid).reduce(
    (sum, each) =>
      sum + Number(new RegExp(`^${field}:\\s+(\\d+)`, 'm').exec(read(`/proc/${each}/status`))?.[1] ?? 0),
    0,
  );
}

export function openFileLimit() {
  return Number(/^Max open files\s+(\d+)/m.exec(read('/proc/self/limits'))?.[1] ?? 0);
}
