/** etcdserverpb.Watch: the streams of clients, by identity. */

import { ClientBudget } from "@quorate/member";
import { WatchService as Descriptor } from "@quorate/proto";
import type { StreamHandler } from "@quorate/rpc";
import type { Namespace } from "../namespace/namespace.ts";
import { type Caller, callerOf } from "../upstream/caller.ts";
import type { ProxyMetrics } from "../upstream/metrics.ts";
import type { Upstream } from "../upstream/upstream.ts";
import { IdentityWatches } from "./identity-watches.ts";
import { WatchClient } from "./watch-client.ts";

/** What watches may cost, of one client address and of all. */
export const MAX_WATCHES_CLIENT_BYTES = 256 * 1024 * 1024;
export const MAX_WATCHES_TOTAL_BYTES = 512 * 1024 * 1024;

export class WatchProxy {
  readonly #upstream: Upstream;
  readonly #metrics: ProxyMetrics;
  readonly #namespace: Namespace | undefined;
  readonly #identities = new Map<string, IdentityWatches>();
  readonly #budget = new ClientBudget({
    maxClientBytes: MAX_WATCHES_CLIENT_BYTES,
    maxTotalBytes: MAX_WATCHES_TOTAL_BYTES,
  });
  #watches = 0;

  constructor(upstream: Upstream, metrics: ProxyMetrics, namespace: Namespace | undefined) {
    this.#upstream = upstream;
    this.#metrics = metrics;
    this.#namespace = namespace;
    metrics.coalescedWatches(() => this.#sum((identity) => identity.coalesced));
  }

  /** Number of watches of clients. */
  get watches(): number {
    return this.#watches;
  }

  /** Number of watches upstream. */
  get broadcasts(): number {
    return this.#sum((identity) => identity.broadcasts);
  }

  /** The handler, by path. */
  methods(): Map<string, StreamHandler> {
    return new Map<string, StreamHandler>([
      [
        Descriptor.methods.Watch.path,
        (call) => {
          const caller = callerOf(call.context);
          return new WatchClient(call, {
            identity: this.#identity(caller),
            namespace: this.#namespace,
            budget: this.#budget,
            requiresLeader: caller.requiresLeader,
            counted: (change) => {
              this.#watches += change;
            },
          });
        },
      ],
    ]);
  }

  /** The watches without an identity, for the proxy's own. */
  anonymous(): IdentityWatches {
    return this.#identity({ identity: "", credentials: [], requiresLeader: false });
  }

  #sum(count: (identity: IdentityWatches) => number): number {
    let sum = 0;
    for (const identity of this.#identities.values()) sum += count(identity);
    return sum;
  }

  #identity(caller: Caller): IdentityWatches {
    const { identity: key } = caller;
    const known = this.#identities.get(key);
    if (known !== undefined) return known;
    const namespace = this.#namespace;
    const made: IdentityWatches = new IdentityWatches(caller, {
      upstream: this.#upstream,
      metrics: this.#metrics,
      plain: namespace === undefined ? undefined : (bytes) => namespace.plainKeyValue(bytes),
      emptied: () => {
        if (this.#identities.get(key) === made) this.#identities.delete(key);
      },
    });
    this.#identities.set(key, made);
    return made;
  }
}
