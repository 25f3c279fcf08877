/**
 * Which endpoint a connection of the gateway goes to (etcd: server/proxy/tcpproxy/userspace.go): of
 * the active ones those of the best priority; by weight where SRV records have weights, else in
 * turn. Where no active one is left, the inactive ones are tried by the same rule: etcd closes the
 * connection instead, so one failed attempt takes an only endpoint out of service.
 */
import type { Random } from "@quorate/host";

/** One endpoint. */
export interface GatewayEndpoint {
  readonly host: string;
  readonly port: number;
  /** Of its SRV record; smaller is better. */
  readonly priority: number;
  readonly weight: number;
}

/** An endpoint and whether it is preferred. */
export class Balance {
  readonly endpoint: GatewayEndpoint;
  /** "host:port", with brackets for an IPv6 address. */
  readonly address: string;
  /** False from a failed attempt to reach it until one that succeeds. */
  isActive = true;

  constructor(endpoint: GatewayEndpoint) {
    this.endpoint = endpoint;
    const { host, port } = endpoint;
    this.address = `${host.includes(":") ? `[${host}]` : host}:${port}`;
  }
}

/** One connection in so many goes to a record without a weight beside others with one. */
const RARELY = 100;

export class Picker {
  readonly remotes: readonly Balance[];
  readonly #random: Random;
  #turn = 0;

  constructor(endpoints: readonly GatewayEndpoint[], random: Random) {
    this.remotes = endpoints.map((endpoint) => new Balance(endpoint));
    this.#random = random;
  }

  /**
   * The endpoint that a connection tries next.
   * @param tried those that it has tried in vain; none is tried twice
   * @returns undefined when all have been tried
   */
  next(tried: ReadonlySet<Balance> = new Set()): Balance | undefined {
    const left = this.remotes.filter((one) => !tried.has(one));
    const active = left.filter((one) => one.isActive);
    const usable = active.length > 0 ? active : left;
    const best = Math.min(...usable.map(({ endpoint }) => endpoint.priority));
    const candidates = usable.filter(({ endpoint }) => endpoint.priority === best);
    const weighted = candidates.filter(({ endpoint }) => endpoint.weight > 0);
    const unweighted = candidates.filter(({ endpoint }) => endpoint.weight === 0);
    if (weighted.length === 0) return this.#inTurn(unweighted);
    if (unweighted.length > 0 && this.#random.below(RARELY) === 0) return this.#inTurn(unweighted);
    let choice = this.#random.below(weighted.reduce((sum, one) => sum + one.endpoint.weight, 0));
    return weighted.find(({ endpoint }) => {
      choice -= endpoint.weight;
      return choice < 0;
    });
  }

  #inTurn(candidates: readonly Balance[]): Balance | undefined {
    if (candidates.length === 0) return undefined;
    // The turn counts over all endpoints, so that one that comes back keeps its place.
    for (;;) {
      const one = this.remotes[this.#turn++ % this.remotes.length];
      if (one === undefined || candidates.includes(one)) return one;
    }
  }
}
