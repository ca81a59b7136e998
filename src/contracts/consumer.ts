import type { Labels } from '../common/selector/label-selector.js';

/** Who sent a request: one key of one consumer of the file. The same object for all requests with that key. */
export interface Consumer {
  /** Of the consumer; of no use to anybody who would call. */
  readonly id: string;
  /** Id of the key that was shown, unique in its consumer. */
  readonly key: string;
  /** The consumer's, then the key's, then `sys/consumer` and `sys/key`. */
  readonly labels: Labels;
  /** Place in a waiting line, −1000…1000; higher first. */
  readonly priority: number;
  /** May address a provider and its model without an entry in `models`. */
  readonly direct: boolean;
}
