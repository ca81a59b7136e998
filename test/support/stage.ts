import { onTestFinished } from 'vitest';
import { TestGateway, type GatewayOptions } from './gateway.js';
import type { RawAnswer, RawRequest } from './raw-client.js';
import { ScriptedUpstream } from './scripted-upstream.js';
import { secretKey } from './secret-watch.js';

type Section = Readonly<Record<string, unknown>>;
/** The same for every entry, or made for each from its number. */
type Sections = Section | ((index: number) => Section);

export interface StageOptions extends Omit<GatewayOptions, 'yaml' | 'config'> {
  /** Number of scripted upstreams; ids a, b, c, … in the order of model `m`. */
  readonly upstreams?: number;
  readonly server?: Section;
  readonly provider?: Sections;
  readonly upstream?: Sections;
  readonly model?: Section;
  /** Further top-level keys, or other values for `providers`, `upstreams`, `models`. */
  readonly file?: (upstreams: readonly ScriptedUpstream[]) => Section;
}

export interface Stage {
  readonly gateway: TestGateway;
  readonly a: ScriptedUpstream;
  readonly b: ScriptedUpstream;
  readonly c: ScriptedUpstream;
  /** Asks model `m` without `stream`; on a connection of its own. */
  readonly chat: (body?: Section, request?: RawRequest) => RawAnswer;
  readonly stream: (body?: Section, request?: RawRequest) => RawAnswer;
}

export const MESSAGES = [{ role: 'user', content: 'hi' }];

/**
 * One model `m` whose upstreams a, b, c … are scripted, each at a provider of its own (pa, pb, …), and the service in
 * front of them. Everything is closed at the end of the test.
 */
export async function stage(options: StageOptions = {}): Promise<Stage> {
  const upstreams: ScriptedUpstream[] = [];
  for (let i = 0; i < (options.upstreams ?? 1); i++) {
    const upstream = await ScriptedUpstream.start();
    upstreams.push(upstream);
    onTestFinished(() => upstream.stop());
  }
  const gateway = await TestGateway.start({ ...options, config: fileOf(options, upstreams) });
  onTestFinished(() => gateway.close());
  const ask = (body: Section, request: RawRequest): RawAnswer =>
    gateway.send({ body: { model: 'm', messages: MESSAGES, ...body }, ...request });
  return {
    gateway,
    a: upstreams[0] as ScriptedUpstream,
    b: upstreams[1] as ScriptedUpstream,
    c: upstreams[2] as ScriptedUpstream,
    chat: (body = {}, request = {}) => ask(body, request),
    stream: (body = {}, request = {}) => ask({ stream: true, ...body }, request),
  };
}

function fileOf(options: StageOptions, upstreams: readonly ScriptedUpstream[]): object {
  const ids = upstreams.map((_, i) => idOf(i));
  return {
    server: { host: '127.0.0.1', port: 0, ...options.server },
    providers: upstreams.map(({ url }, i) => ({
      id: `p${idOf(i)}`,
      url,
      key: secretKey(idOf(i)),
      ...sectionOf(options.provider, i),
    })),
    upstreams: ids.map((id, i) => ({
      id,
      provider: `p${id}`,
      model: `real-${id}`,
      ...sectionOf(options.upstream, i),
    })),
    models: [{ name: 'm', upstreams: ids, ...options.model }],
    ...options.file?.(upstreams),
  };
}

function sectionOf(sections: Sections | undefined, index: number): Section {
  return typeof sections === 'function' ? sections(index) : (sections ?? {});
}

export function idOf(index: number): string {
  return 'abcdefghij'.charAt(index);
}
