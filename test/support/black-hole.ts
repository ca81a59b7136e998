import { type ChildProcess, spawn } from 'node:child_process';
import { connect, type Socket } from 'node:net';
import { waitFor } from './wait-for.js';

/** Listens, then never takes a connection again: its event loop stands still. */
const SERVER = `
const server = require('node:net').createServer();
server.listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => {
  require('node:fs').writeSync(1, server.address().port + '\\n');
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 60000);
});`;

/** An address on the loopback that leaves connects unanswered. Lives until `close`. */
export class BlackHole {
  private constructor(
    readonly port: number,
    private readonly child: ChildProcess,
    private readonly fillers: readonly Socket[],
  ) {}

  static async open(): Promise<BlackHole> {
    const child = spawn(process.execPath, ['-e', SERVER], { stdio: ['ignore', 'pipe', 'inherit'] });
    let port = 0;
    child.stdout?.once('data', (text: Buffer) => (port = Number(text.toString())));
    await waitFor(() => port > 0, 'the server listens');
    // Fills the backlog: what is not accepted by the kernel stays connecting.
    const fillers = Array.from({ length: 8 }, () => connect(port, '127.0.0.1').on('error', () => {}));
    await waitFor(
      () => fillers.some(({ connecting }) => !connecting),
      'the kernel took the first connections',
    );
    return new BlackHole(port, child, fillers);
  }

  close(): void {
    for (const socket of this.fillers) socket.destroy();
    this.child.kill('SIGKILL');
  }
}
