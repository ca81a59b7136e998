export interface SeenEvent {
  readonly data: string;
  readonly json: Record<string, unknown> | undefined;
}

/** The events of an SSE text as a client of the WHATWG rules sees them. */
export function parseSse(text: string): SeenEvent[] {
  const events: SeenEvent[] = [];
  let data: string[] = [];
  for (const line of text.split(/\r\n|\n|\r/)) {
    if (line === '') {
      if (data.length > 0) events.push(seen(data.join('\n')));
      data = [];
    } else if (line.startsWith('data:')) {
      const value = line.slice('data:'.length);
      data.push(value.startsWith(' ') ? value.slice(1) : value);
    }
  }
  return events;
}

function seen(data: string): SeenEvent {
  try {
    return { data, json: JSON.parse(data) as Record<string, unknown> };
  } catch {
    return { data, json: undefined };
  }
}

interface Delta {
  readonly content?: unknown;
  readonly reasoning_content?: unknown;
}

/** All strings of one member of the deltas of one choice, joined. */
export function joinDeltas(text: string, member: keyof Delta = 'content', index = 0): string {
  let joined = '';
  for (const { json } of parseSse(text)) {
    for (const choice of (json?.['choices'] ?? []) as { index: number; delta?: Delta }[]) {
      const value = choice.delta?.[member];
      if (choice.index === index && typeof value === 'string') joined += value;
    }
  }
  return joined;
}
