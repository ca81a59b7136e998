// Several processes of the service with one file.
import { setTimeout as sleep } from 'node:timers/promises';
import { Service, sumOf } from '../soak/service.mjs';

const IDLE_WITHIN_MS = 25_000;

/** One of them, through all its lives. */
export class Replica {
  up = false;
  deaths = 0;
  errors = [];
  #service = null;

  constructor(name, launch) {
    this.name = name;
    this.launch = launch;
  }

  get port() {
    return this.#service.port;
  }

  async start() {
    this.#service = new Service();
    await this.#service.start(this.launch);
    this.up = true;
  }

  async kill() {
    this.up = false;
    this.deaths++;
    await this.#service.kill();
    this.#forget();
  }

  async stop() {
    this.up = false;
    const exitCode = await this.#service.stop();
    this.#forget();
    return exitCode;
  }

  cleanUp() {
    this.#service?.cleanUp();
  }

  metrics() {
    return this.#service.metrics();
  }

  #forget() {
    this.errors.push(...this.#service.errors);
    this.#service.cleanUp();
  }
}

/** What is in flight and what waits at all of them when all clients have gone; what ends late is given its time. */
export async function held(replicas, redis) {
  const until = performance.now() + IDLE_WITHIN_MS;
  for (;;) {
    const samples = await Promise.all(replicas.map((replica) => replica.metrics()));
    const inflight = samples.map((of) => total(of, 'llm_proxy_upstream_inflight'));
    const waiting = samples.map((of) => total(of, 'llm_proxy_queue_depth'));
    const leases = redis === null ? [] : await redis.leases();
    const nothing = [...inflight, ...waiting, leases.length].every((count) => count === 0);
    if (nothing || performance.now() > until) return { inflight, waiting, leases };
    await sleep(100);
  }
}

/** NaN where there is no such series: that must not pass for 0. */
function total(samples, name) {
  const known = [...samples.keys()].some((key) => key === name || key.startsWith(`${name}{`));
  return known ? sumOf(samples, name) : NaN;
}
