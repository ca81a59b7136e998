import { ErrorReply } from '@redis/client';
import { StateUnavailable } from '../state-unavailable.js';

const RIGHTS = 'NOPERM: the user of state.url';
/** What an operator can mend, in words. All of them mean everybody, and not one command. */
const REFUSALS: ReadonlyMap<string, string> = new Map([
  ['WRONGPASS', 'it refuses the user or password of state.url'],
  ['NOAUTH', 'it wants a password in state.url'],
  ['NOPERM', `${RIGHTS} may not run the commands that are needed`],
  ['READONLY', 'READONLY: it is a replica that takes no writes'],
  ['NOREPLICAS', 'NOREPLICAS: it has not the replicas that min-replicas-to-write wants'],
  ['MISCONF', 'MISCONF: it cannot save to its disk and takes no writes'],
  ['OOM', 'OOM: its memory is full'],
  ['LOADING', 'LOADING: it is reading its data'],
  ['BUSY', 'BUSY: it runs a script that does not end'],
  ['MASTERDOWN', 'MASTERDOWN: it is a replica that lost its master'],
  ['CLUSTERDOWN', 'CLUSTERDOWN: its cluster does not work'],
  ['MOVED', 'MOVED: another node of its cluster has the keys of state.prefix'],
  ['ASK', 'ASK: the keys of state.prefix are moving to another node of its cluster'],
  ['TRYAGAIN', 'TRYAGAIN: the keys of state.prefix are moving to another node of its cluster'],
  ['EXECABORT', 'EXECABORT'],
]);
// Trap: Redis 6 puts the code of what failed in a script behind its own words.
const CODE = new RegExp(`(?:^|[\\s:]-?)(${[...REFUSALS.keys()].join('|')})\\s`);

/** What is said without a code of its own, or in more detail than by it. */
const WORDS: readonly (readonly [RegExp, (found: RegExpExecArray) => string])[] = [
  [/DB index is out of range/, () => 'it has no database of the number in state.url'],
  [
    /SELECT is not allowed in cluster mode/,
    () => 'a cluster has no numbered databases, and state.url names one',
  ],
  [/permissions to run the '([\w|]+)' command/, ([, command]) => `${RIGHTS} may not run ${command}`],
  [/can't run this command/, () => `${RIGHTS} may not run a command that the scripts need`],
  [/one of the keys/, () => `${RIGHTS} may not use the keys of state.prefix`],
  [/one of the channels|publish to the channel/, () => `${RIGHTS} may not use the channels of state.prefix`],
  [/unknown command '?`?([\w|]+)/, ([, command]) => `it does not know the command ${command}`],
];

/** Whether Redis says so to everybody: it is of no use until it says something else. */
export function isRefusal(error: unknown): boolean {
  if (!(error instanceof ErrorReply)) return false;
  return CODE.test(`${error.message} `) || WORDS.some(([pattern]) => pattern.test(error.message));
}

/** Our words, a code or the first word of Redis: none holds an address or a secret. */
export function shortReason(error: unknown): string {
  if (error instanceof StateUnavailable) return error.message;
  if (!(error instanceof Error)) return 'unknown error';
  const { code } = error as NodeJS.ErrnoException;
  if (typeof code === 'string') return code;
  for (const [pattern, words] of WORDS) {
    const found = pattern.exec(error.message);
    if (found !== null) return words(found);
  }
  const known = REFUSALS.get(CODE.exec(`${error.message} `)?.[1] ?? '');
  return known ?? /^-?([A-Z]{3,20})\b/.exec(error.message)?.[1] ?? error.constructor.name;
}
