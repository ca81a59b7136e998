import { timerDelay } from '../../common/time/clock.js';

/** Rings once after some time, unless the returned function is called before. Tests own theirs. */
export type SetAlarm = (afterMs: number, ring: () => void) => () => void;

/** May ring early where the time is longer than a timer can be: whoever is woken looks at the clock. */
export const setNodeAlarm: SetAlarm = (afterMs, ring) => {
  const timer = setTimeout(ring, timerDelay(afterMs));
  return () => clearTimeout(timer);
};
