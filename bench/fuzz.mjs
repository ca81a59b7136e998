#!/usr/bin/env node
// Hostile bytes against the HTTP entry of the built service, for as long as asked.
// node bench/fuzz.mjs [--seconds 60] [--seed 1] [--main dist/main.js]
import { existsSync } from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { chance, faultIn, hostileBytes } from '../test/fuzz/hostile-request.ts';
import { configurationText } from './soak/configuration.mjs';
import { FakeProvider } from './soak/provider.mjs';
import { Random } from './soak/random.mjs';
import { Service, sumOf } from './soak/service.mjs';
import { readOptions } from './lib/options.mjs';

const ROOT = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const QUIET_MS = 40;
const AT_ONCE = 24;

const options = readOptions(import.meta.url, {
  seconds: { type: 'string', default: '60' },
  seed: { type: 'string', default: String(Date.now() % 1_000_000) },
  main: { type: 'string', default: path.join(ROOT, 'dist/main.js') },
});

const ownNode = path.join(ROOT, 'node_modules/.bin/node');
const service = new Service();
const provider = new FakeProvider(new Random(1), {});
process.on('exit', () => service.cleanUp());

async function send(bytes) {
  const pieces = [];
  const socket = net.connect(service.port, '127.0.0.1');
  socket.on('error', () => {}).on('data', (piece) => pieces.push(piece));
  const closed = new Promise((resolve) => socket.once('close', resolve));
  socket.write(bytes);
  let seen = -1;
  while (seen < pieces.length && !socket.closed) {
    seen = pieces.length;
    await Promise.race([closed, new Promise((resolve) => setTimeout(resolve, QUIET_MS))]);
  }
  socket.resetAndDestroy();
  await closed;
  return Buffer.concat(pieces);
}

async function main() {
  await service.start({
    node: existsSync(ownNode) ? ownNode : process.execPath,
    nodeArgs: [],
    main: options.main,
    configuration: configurationText(await provider.listen()),
  });
  const random = chance(Number(options.seed));
  const until = performance.now() + Number(options.seconds) * 1000;
  const faults = [];
  let sent = 0;
  let next = 0;
  while (performance.now() < until && service.exited === null) {
    const inputs = Array.from({ length: AT_ONCE }, () => hostileBytes(random));
    const answers = await Promise.all(inputs.map(send));
    sent += answers.length;
    for (const [i, answer] of answers.entries()) {
      const fault = faultIn(answer);
      if (fault !== null)
        faults.push(`${fault} to ${JSON.stringify(inputs[i].toString('latin1').slice(0, 400))}`);
    }
    if (performance.now() > next) {
      next = performance.now() + 5000;
      console.log(`${sent} sent, faults ${faults.length}`);
    }
  }
  const alive = await service.get('/healthz');
  const inflight = sumOf(await service.metrics(), 'llm_proxy_upstream_inflight');
  const { errors } = service;
  const exitCode = await service.stop();
  for (const line of [...faults.slice(0, 20), ...errors.slice(0, 5)]) console.log(`fault: ${line}`);
  console.log(
    `seed ${options.seed}: ${sent} connections, ${faults.length} faults, alive ${alive?.status === 200}, ` +
      `slots held ${inflight}, errors in the log ${errors.length}, exit code ${exitCode}`,
  );
  await provider.close();
  const good = faults.length + errors.length + inflight === 0 && alive?.status === 200 && exitCode === 0;
  process.exit(good ? 0 : 1);
}

main().catch((error) => {
  console.error(error);
  process.exit(2);
});
