export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** One scrape, as Prometheus would read it. */
export class MetricsText {
  readonly samples: Sample[];

  constructor(readonly text: string) {
    this.samples = text
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'))
      .map(parseSample);
  }

  /** Samples of that name whose labels hold at least these. */
  find(name: string, labels: Readonly<Record<string, string>> = {}): Sample[] {
    return this.samples.filter(
      (sample) =>
        sample.name === name && Object.entries(labels).every(([key, value]) => sample.labels[key] === value),
    );
  }

  /** Sum over the samples found; 0 where there is none. */
  sum(name: string, labels: Readonly<Record<string, string>> = {}): number {
    return this.find(name, labels).reduce((total, { value }) => total + value, 0);
  }
}

function parseSample(line: string): Sample {
  const match = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/.exec(line);
  if (match === null) throw new Error(`no sample of the Prometheus text format: ${line}`);
  const labels: Record<string, string> = {};
  for (const [, key = '', value = ''] of (match[2] ?? '').matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)) {
    labels[key] = value;
  }
  return { name: match[1] as string, labels, value: Number(match[3]) };
}
