// The slope of memory after the warm-up: what a leak shows, and a sawtooth does not.

export class MemoryTrend {
  samples = [];

  add(seconds, requests, kilobytes) {
    this.samples.push({ seconds, requests, kilobytes });
  }

  /** Least squares over the samples after the first `warmUp` share of the run. */
  slopes(warmUp = 0.4) {
    const last = this.samples.at(-1);
    if (last === undefined) return null;
    const late = this.samples.filter(({ seconds }) => seconds >= last.seconds * warmUp);
    if (late.length < 10) return null;
    return {
      kilobytesPerMinute: slope(late, 'seconds') * 60,
      megabytesPerThousand: (slope(late, 'requests') * 1000) / 1024,
      seconds: last.seconds - late[0].seconds,
      requests: last.requests - late[0].requests,
      first: late[0].kilobytes,
      last: last.kilobytes,
      peak: Math.max(...this.samples.map(({ kilobytes }) => kilobytes)),
    };
  }
}

function slope(samples, by) {
  const n = samples.length;
  const meanX = samples.reduce((sum, sample) => sum + sample[by], 0) / n;
  const meanY = samples.reduce((sum, sample) => sum + sample.kilobytes, 0) / n;
  let over = 0;
  let under = 0;
  for (const sample of samples) {
    over += (sample[by] - meanX) * (sample.kilobytes - meanY);
    under += (sample[by] - meanX) ** 2;
  }
  return under === 0 ? 0 : over / under;
}
