import { secretKey } from './secret-watch.js';

/** The clear key of a consumer, whose text fails the file where the service puts it out anywhere. */
export const keyOf = (name: string): string => secretKey(`consumer-${name}`);

export const bearer = (name: string): Record<string, string> => ({ authorization: `Bearer ${keyOf(name)}` });

/** A consumer with one key `k`. */
export const consumer = (id: string, more: object = {}, key: object = {}): object => ({
  id,
  keys: [{ id: 'k', value: keyOf(id), ...key }],
  ...more,
});
