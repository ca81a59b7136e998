/** Something in the file that must, or (as a warning) should, be mended. Holds no secret. */
export interface ConfigProblem {
  /** Where it stands, such as `upstreams[2].provider`; '' for the file as a whole. */
  readonly path: string;
  /** Counted from 1; null where no line can be named. */
  readonly line: number | null;
  readonly message: string;
}

/** One line of text: `upstreams[2].provider (line 160): no provider has the id "nowhere"`. */
export function formatProblem({ path, line, message }: ConfigProblem): string {
  const place =
    path === '' ? (line === null ? '' : `line ${line}`) : line === null ? path : `${path} (line ${line})`;
  return place === '' ? message : `${place}: ${message}`;
}
