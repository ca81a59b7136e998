import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { completion } from '../../test/support/answers.js';
import { startAttempt } from '../../test/support/attempt-start.js';
import { ScriptedUpstream } from '../../test/support/scripted-upstream.js';
import { within } from '../../test/support/wait-for.js';
import type { AttemptQuota } from './attempt-quota.js';

let provider: ScriptedUpstream;

beforeEach(async () => {
  provider = await ScriptedUpstream.start();
});

afterEach(async () => {
  await provider.stop();
});

const mistake = new Error('not to be counted');
const quota = {
  answerBytes: 0,
  end: () => {
    throw mistake;
  },
} as unknown as AttemptQuota;

describe('AttemptRun, whose end cannot be counted', () => {
  it('has an outcome even so', async () => {
    const run = startAttempt(provider, (_, answer) => answer.json(200, completion()), { quota });
    expect(await within(run.outcome, 'the outcome')).toMatchObject({ result: 'ok', answered: true });
    expect(run.sink.ending).toBe('end');
    expect(run.crashes).toEqual([mistake]);
  });

  it('lets the next upstream be tried after a failure', async () => {
    const run = startAttempt(provider, (_, answer) => answer.error(503), { quota });
    expect(await within(run.outcome, 'the outcome')).toMatchObject({ result: '5xx', answered: false });
    expect(run.crashes).toEqual([mistake]);
  });
});
