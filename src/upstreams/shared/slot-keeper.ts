import type { Lease } from '../lease.js';

/** Keeps the books of slots that several replicas share. Null at an upstream that only this process uses. */
export interface SlotKeeper {
  /** A slot that this replica has in hand was taken. */
  took(lease: Lease): void;
  /** Comes before the slot is free again: it may be somebody else's turn. */
  givesBack(lease: Lease): void;
}
