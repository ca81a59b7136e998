import { describe, expect, it } from 'vitest';
import { StopSignals } from './stop-signals.js';

function heard(npmInTerminal: boolean, signals: readonly [string, number][]): string[] {
  let now = 0;
  const stop = new StopSignals(npmInTerminal, () => now);
  return signals.map(([signal, at]) => {
    now = at;
    return stop.heard(signal);
  });
}

describe('StopSignals', () => {
  it.each(['SIGINT', 'SIGTERM', 'SIGHUP'])(
    'drains at the first %s and ends at the second, however soon',
    (signal) => {
      expect(
        heard(false, [
          [signal, 0],
          [signal, 0.5],
        ]),
      ).toEqual(['drain', 'end']);
    },
  );

  it('takes the copy that npm makes of a Ctrl-C for no second signal, once', () => {
    expect(
      heard(true, [
        ['SIGINT', 0],
        ['SIGINT', 2],
        ['SIGINT', 4],
      ]),
    ).toEqual(['drain', 'ignore', 'end']);
  });

  it.each<[string, string, number]>([
    ['SIGINT', 'SIGINT', 120],
    ['SIGTERM', 'SIGTERM', 1],
    ['SIGINT', 'SIGTERM', 1],
    ['SIGTERM', 'SIGINT', 1],
  ])('knows under npm too that %s, %s after %i ms are two', (first, second, at) => {
    expect(
      heard(true, [
        [first, 0],
        [second, at],
      ]),
    ).toEqual(['drain', 'end']);
  });
});
