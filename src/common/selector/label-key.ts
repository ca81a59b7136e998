/** Built-in labels stand under this prefix; nobody else may set one there. */
export const RESERVED_PREFIX = 'sys/';

const LONGEST_NAME = 63;
const LONGEST_PREFIX = 253;
const NAME = /^[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?$/;
const PREFIX = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$/;

/** What is wrong with a label's key, `[prefix/]name` as in Kubernetes; null where nothing is. */
export function labelKeyProblem(key: string): string | null {
  const slash = key.indexOf('/');
  const name = key.slice(slash + 1);
  if (slash >= 0) {
    const prefix = key.slice(0, slash);
    // The length first: the expressions see short texts only.
    if (prefix.length > LONGEST_PREFIX || !PREFIX.test(prefix))
      return 'what stands before the "/" of a label must be a domain name in lower case, such as example.com';
  }
  if (name.length > LONGEST_NAME) return `the name of a label has at most ${LONGEST_NAME} characters`;
  return NAME.test(name)
    ? null
    : 'the name of a label holds letters, digits, "-", "_" and ".", and begins and ends with a letter or digit';
}
