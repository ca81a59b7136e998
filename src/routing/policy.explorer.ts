import { Injectable } from '@nestjs/common';
import { DiscoveryService, Reflector } from '@nestjs/core';
import { PluginSetupError, registeredTwice } from '../common/errors/plugin-setup-error.js';
import type { ConfigPath } from '../common/text/config-path.js';
import { printable } from '../common/text/mask.js';
import { ROUTING_POLICY_METADATA, type RoutingPolicy } from '../contracts/routing-policy.js';

/** Finds every provider marked with `@RegisterRoutingPolicy`, built-in or a plugin's, once. */
@Injectable()
export class PolicyExplorer {
  #policies: ReadonlyMap<string, RoutingPolicy> | null = null;

  constructor(
    private readonly discovery: DiscoveryService,
    private readonly reflector: Reflector,
  ) {}

  /** `path` is where the file names it. Throws, with a text for people, for a name that nobody registered. */
  policy(name: string, path: ConfigPath): RoutingPolicy {
    const policies = (this.#policies ??= this.#explore());
    const policy = policies.get(name);
    if (policy !== undefined) return policy;
    const known = ['listed', ...policies.keys()].sort().join(', ');
    const message = `no routing policy has the name "${printable(name, 60)}"; known: ${known}`;
    throw new PluginSetupError([{ path, message }]);
  }

  #explore(): ReadonlyMap<string, RoutingPolicy> {
    const found = new Map<string, RoutingPolicy>();
    for (const { metatype, instance } of this.discovery.getProviders()) {
      if (typeof metatype !== 'function' || !instance) continue;
      const name = this.reflector.get<string | undefined>(ROUTING_POLICY_METADATA, metatype);
      if (name === undefined || found.get(name) === instance) continue;
      if (found.has(name) || name === 'listed') {
        throw new PluginSetupError([{ path: [], message: registeredTwice('policy', name) }]);
      }
      if (typeof (instance as Partial<RoutingPolicy>).order !== 'function') {
        const message = `the routing policy "${printable(name, 60)}" has no method order`;
        throw new PluginSetupError([{ path: [], message }]);
      }
      found.set(name, instance as RoutingPolicy);
    }
    return found;
  }
}
