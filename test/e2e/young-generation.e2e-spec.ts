import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { ServiceProcess } from '../support/process.js';

const config = {
  server: { host: '127.0.0.1', port: 0 },
  providers: [{ id: 'p', url: 'http://127.0.0.1:9/v1' }],
  upstreams: [{ id: 'u', provider: 'p', model: 'real' }],
  models: [{ name: 'm', upstreams: ['u'] }],
};

/** The command line as the system shows it. */
async function commandOf(environment: Record<string, string>): Promise<string> {
  const service = await ServiceProcess.listening({ config, environment });
  return readFileSync(`/proc/${service.child.pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
}

describe.runIf(process.platform === 'linux')('the young generation of the heap', () => {
  it('is small, in the very process that was started', async () => {
    expect(await commandOf({})).toMatch(/^\S*node\S* --max-semi-space-size=8 \S*main\.js /);
  });

  it.each(['--max-semi-space-size=32', '--max_semi_space_size=32'])(
    'is left to NODE_OPTIONS=%s',
    async (option) => {
      expect(await commandOf({ NODE_OPTIONS: option })).not.toContain('semi');
    },
  );
});
