const POLL_MS = 3;
const DEADLINE_MS = 8_000;

/** Waits until the condition holds; fails with `what` after the deadline. Never a plain sleep. */
export async function waitFor(
  condition: () => boolean | Promise<boolean>,
  what: string,
  deadlineMs: number = DEADLINE_MS,
): Promise<void> {
  const end = performance.now() + deadlineMs;
  while (!(await condition())) {
    if (performance.now() > end) throw new Error(`waited ${deadlineMs} ms in vain until ${what}`);
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

/** A promise that fails with `what` where it is not settled within the deadline. */
export async function within<T>(
  promise: Promise<T>,
  what: string,
  deadlineMs: number = DEADLINE_MS,
): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`waited ${deadlineMs} ms in vain for ${what}`)), deadlineMs);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** A gate that a test opens by hand: what a scripted upstream waits for instead of a sleep. */
export interface Gate {
  readonly opened: Promise<void>;
  open(): void;
}

export function gate(): Gate {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { opened: promise, open: resolve };
}
