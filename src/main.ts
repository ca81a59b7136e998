#!/usr/bin/env node
import module from 'node:module';

const OLDEST_MAJOR = 22;
const OLDEST_MINOR = 19;

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
if (major < OLDEST_MAJOR || (major === OLDEST_MAJOR && minor < OLDEST_MINOR)) {
  process.stderr.write(
    `[llm-proxy] Node.js ${process.versions.node} is too old: ${OLDEST_MAJOR}.${OLDEST_MINOR} or newer is needed (24 is recommended)\n`,
  );
  process.exit(1);
}
const { keepTickShape } = await import('./config/tick-shape.js');
keepTickShape();
module.enableCompileCache?.();
const { run } = await import('./bootstrap.js');
await run(process.argv.slice(2));
