import type { HeartbeatConfig, QueueConfig, SlotGroupConfig, SpillConfig } from '../gateway-config.js';
import type { HeartbeatSection } from '../schema/heartbeat.section.js';
import type { ModelEntrySection } from '../schema/model-entry.section.js';
import { parseByteSize } from '../schema/number-rules.js';
import type { QueueSection } from '../schema/queue.section.js';
import { durationOf } from './duration-setting.js';
import { isPlainObject, type PlainObject } from './plain-object.js';

const DEFAULT_SIZE = 100;
const DEFAULT_WAIT_MS = 20_000;
const DEFAULT_MAX_BYTES = 256 * 1024 * 1024;
const DEFAULT_HEARTBEAT_MS = 10_000;

export function slotGroupsOf(written: PlainObject | undefined): ReadonlyMap<string, SlotGroupConfig> {
  return new Map(
    Object.entries(written ?? {}).map(([id, group]) => {
      const { limit, settle } = isPlainObject(group) ? group : { limit: group, settle: undefined };
      return [id, { id, limit: limit as number, settleMs: durationOf(settle)?.ms ?? 0 }];
    }),
  );
}

/** The upstream's choice, also that it has none; else its provider's. */
export function slotGroupOf(
  own: string | null | undefined,
  inherited: string | null | undefined,
  groups: ReadonlyMap<string, SlotGroupConfig>,
): SlotGroupConfig | null {
  const id = own === undefined ? inherited : own;
  return groups.get(id ?? '') ?? null;
}

export function queueOf(section: QueueSection | undefined): QueueConfig | null {
  if (section === undefined) return null;
  return {
    size: section.size ?? DEFAULT_SIZE,
    waitMs: durationOf(section.wait)?.ms ?? DEFAULT_WAIT_MS,
    maxBytes: section.max_bytes === undefined ? DEFAULT_MAX_BYTES : (parseByteSize(section.max_bytes) ?? 0),
    ageingMs: durationOf(section.ageing)?.ms ?? 0,
  };
}

export function heartbeatOf(section: HeartbeatSection | undefined): HeartbeatConfig | null {
  if (section === undefined) return null;
  return {
    afterMs: durationOf(section.after)?.ms ?? DEFAULT_HEARTBEAT_MS,
    // Zero would be a flood; it was warned about.
    everyMs: durationOf(section.every)?.ms || DEFAULT_HEARTBEAT_MS,
  };
}

export function spillOf({ spill_after, spill_min_priority }: ModelEntrySection): SpillConfig | null {
  const after = durationOf(spill_after);
  if (after === null && spill_min_priority === undefined) return null;
  return { afterMs: after?.ms ?? 0, minPriority: spill_min_priority ?? -Infinity };
}
