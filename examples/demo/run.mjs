#!/usr/bin/env node
/**
 * The demo: three providers and the gateway in one process. Builds first where needed (`--no-build`: never).
 * LLM_PROXY_DEMO_PORT chooses another port than that of config/demo.yaml.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import module from 'node:module';
import { build, whyBuild } from './build.mjs';
import { startDemoProviders } from './providers.mjs';
import { thingsToTry } from './things-to-try.mjs';

const ROOT = join(dirname(fileURLToPath(import.meta.url)), '..', '..');
const CONFIG = join(ROOT, 'config', 'demo.yaml');
const CONFIG_PORT = /^ {2}port: (\d+)/m;
/** A terminal's Ctrl-C reaches this process twice: from the terminal, and from npm, which forwards it. */
const SAME_KEYSTROKE_MS = 500;

const write = (text) => process.stdout.write(text);

try {
  await main();
} catch (error) {
  process.stderr.write(`\n${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(1);
}

async function main() {
  const why = process.argv.includes('--no-build') ? null : whyBuild(ROOT);
  if (why !== null) {
    write(`Building first (${why}) `);
    await build(ROOT, write);
  }
  const text = readFileSync(CONFIG, 'utf8');
  const port = portFrom(text);
  await refuseTakenPort(port);
  module.enableCompileCache?.();
  const [providers, { run }] = await Promise.all([startDemoProviders(), import('../../dist/bootstrap.js')]);
  Object.assign(process.env, providers.environment);
  process.env.CONFIG_PATH = configFor(port, text);
  process.env.LOG_FORMAT ??= 'pretty';
  await run([]);
  onceForEachKeystroke('SIGINT');
  onceForEachKeystroke('SIGTERM');
  await ready(port);
  write(thingsToTry(`http://127.0.0.1:${port}`));
}

function portFrom(text) {
  const asked = process.env.LLM_PROXY_DEMO_PORT;
  if (!asked) return Number(CONFIG_PORT.exec(text)?.[1]);
  const port = Number(asked);
  if (Number.isInteger(port) && port > 0 && port < 65_536) return port;
  throw new Error(`LLM_PROXY_DEMO_PORT="${asked}" is no port; write a number from 1 to 65535`);
}

/** The port stands in the configuration, so another port needs another file. */
function configFor(port, text) {
  if (text.includes(`\n  port: ${port} `)) return CONFIG;
  const folder = mkdtempSync(join(tmpdir(), 'llm-proxy-demo-'));
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, 'demo.yaml');
  writeFileSync(path, text.replace(CONFIG_PORT, `  port: ${port}`));
  return path;
}

function refuseTakenPort(port) {
  return new Promise((resolve, reject) => {
    const trial = createServer();
    trial.once('error', (error) => {
      const why = error.code === 'EADDRINUSE' ? 'is in use' : `cannot be used (${error.code})`;
      const other = port === 8101 ? 8102 : 8101;
      reject(new Error(`Port ${port} ${why}. Choose another: LLM_PROXY_DEMO_PORT=${other} npm run demo`));
    });
    trial.listen(port, '127.0.0.1', () => trial.close(() => resolve()));
  });
}

async function ready(port) {
  const answer = await fetch(`http://127.0.0.1:${port}/readyz`);
  if (!answer.ok) throw new Error(`The gateway is not ready: ${answer.status}`);
}

function onceForEachKeystroke(signal) {
  const listeners = process.listeners(signal);
  process.removeAllListeners(signal);
  let lastAt = -Infinity;
  process.on(signal, () => {
    const now = performance.now();
    if (now - lastAt < SAME_KEYSTROKE_MS) return;
    lastAt = now;
    for (const listener of listeners) listener(signal);
  });
}
