/** What `INFO` tells that matters here. */
export interface RedisInfo {
  readonly clustered: boolean;
  readonly identity: RedisIdentity;
  /** Null = it evicts nothing, or does not say. */
  readonly evicts: string | null;
}

/** Which process of Redis this is, and whose history its data continue; '' = it does not say. */
export interface RedisIdentity {
  readonly run: string;
  readonly history: string;
  /** The one that `history` goes on from. */
  readonly before: string;
}

export function redisInfoOf(text: string): RedisInfo {
  const fields = new Map<string, string>();
  for (const line of text.split('\n')) {
    const colon = line.indexOf(':');
    if (colon > 0) fields.set(line.slice(0, colon), line.slice(colon + 1).trim());
  }
  const field = (name: string) => fields.get(name) ?? '';
  const policy = field('maxmemory_policy');
  return {
    clustered: field('cluster_enabled') === '1',
    identity: {
      run: field('run_id'),
      history: field('master_replid'),
      before: /^0*$/.test(field('master_replid2')) ? '' : field('master_replid2'),
    },
    evicts: policy === '' || policy === 'noeviction' ? null : policy,
  };
}
