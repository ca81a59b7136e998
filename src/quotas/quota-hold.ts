/** What one request holds of quotas; ends with the first of its two calls, the others do nothing. */
export interface QuotaHold {
  /** The request was sent, and used so many tokens. */
  settle(tokens: number, nowMs: number): void;
  /** The request never reached the provider. */
  giveBack(nowMs: number): void;
}
