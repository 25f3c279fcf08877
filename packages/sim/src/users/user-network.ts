/**
 * The network as clients with identities use it: each call and stream has one, and its outcome is
 * judged.
 */
import {
  errorNameOf,
  KVService,
  LeaseKeepAliveRequest,
  LeaseKeepAliveResponse,
  LeaseService,
  MaintenanceService,
} from "@quorate/proto";
import type { ClientNetwork } from "../client-network.ts";
import type {
  ClientStream,
  ClientStreamListener,
  ClientStreamOptions,
  Exchanges,
  Reply,
} from "../exchanges.ts";
import type { Node } from "../node.ts";
import { type CallRules, rulesOf } from "./calls.ts";
import type { Identity } from "./identity.ts";
import { leaseNeed } from "./needs.ts";
import type { Moment, PermissionCheck } from "./permission-check.ts";
import { StreamCheck } from "./stream-check.ts";

const { path: KEEP_ALIVE } = LeaseService.methods.LeaseKeepAlive;
const { path: SNAPSHOT } = MaintenanceService.methods.Snapshot;
const { path: RANGE_STREAM } = KVService.methods.RangeStream;

/** Who asks. @param client its name, where it has said one */
export type Pick = (client: string | undefined) => Identity;

export interface UserNetworkDeps {
  readonly network: ClientNetwork;
  readonly check: PermissionCheck;
  readonly pick: Pick;
  /** Called with each call that was refused. */
  refused(identity: Identity, name: string): void;
  /** Something is wrong. */
  fail(error: unknown): void;
}

export class UserNetwork implements Exchanges {
  readonly #deps: UserNetworkDeps;

  constructor(deps: UserNetworkDeps) {
    this.#deps = deps;
  }

  exchange(
    node: Node,
    path: string,
    bytes: Uint8Array,
    timeoutMs: number,
    client?: string,
  ): Promise<Reply> {
    return this.ask(this.#deps.pick(client), node, path, bytes, timeoutMs);
  }

  /** A call of one identity. */
  async ask(
    identity: Identity,
    node: Node,
    path: string,
    bytes: Uint8Array,
    timeoutMs: number,
  ): Promise<Reply> {
    const { network, check, fail, refused } = this.#deps;
    const call = check.called(node, identity, path, bytes);
    const { credential } = identity;
    const reply = await network.exchange(node, path, bytes, timeoutMs, undefined, credential);
    try {
      check.returned(call, reply);
    } catch (error) {
      fail(error);
    }
    const name = errorNameOf(reply.error ?? "");
    if (name !== undefined) refused(identity, name);
    return reply;
  }

  open(
    node: Node,
    path: string,
    listener: ClientStreamListener,
    options: ClientStreamOptions = {},
  ): ClientStream {
    return this.openAs(this.#deps.pick(undefined), node, path, listener, options);
  }

  /** A stream of one identity. */
  openAs(
    identity: Identity,
    node: Node,
    path: string,
    listener: ClientStreamListener,
    options: ClientStreamOptions = {},
  ): ClientStream {
    const { network, check, fail, refused } = this.#deps;
    const judge = judgeOf(path, new StreamCheck(check, node, identity, path));
    const guarded = (work: () => void) => {
      try {
        work();
      } catch (error) {
        fail(error);
      }
    };
    const heard: ClientStreamListener = {
      message(bytes) {
        guarded(() => judge?.message(bytes));
        listener.message(bytes);
      },
      ended(reason) {
        guarded(() => judge?.ended(reason));
        const name = errorNameOf(reason);
        if (name !== undefined) refused(identity, name);
        listener.ended(reason);
      },
    };
    const stream = network.open(node, path, heard, options, identity.credential);
    return {
      send(bytes) {
        judge?.sent(bytes);
        stream.send(bytes);
      },
      close: () => stream.close(),
    };
  }
}

/** What of a stream is judged. */
interface Judge {
  sent(bytes: Uint8Array): void;
  message(bytes: Uint8Array): void;
  ended(reason: string): void;
}

function judgeOf(path: string, check: StreamCheck): Judge | undefined {
  if (path === KEEP_ALIVE) return new RenewalJudge(check);
  if (path === SNAPSHOT) return new WholeJudge(check, () => SNAPSHOT_RULES);
  if (path === RANGE_STREAM) return new WholeJudge(check, rangeRules);
  return undefined;
}

const SNAPSHOT_RULES: CallRules = {
  served: "local",
  refused: "local",
  hasLeases: false,
  needs: () => [{ kind: "root" }],
};

function rangeRules(bytes: Uint8Array): CallRules | undefined {
  return rulesOf(KVService.methods.Range.path, bytes);
}

/** A stream that one request is for. */
class WholeJudge implements Judge {
  readonly #check: StreamCheck;
  readonly #rulesOf: (bytes: Uint8Array) => CallRules | undefined;
  #rules: CallRules | undefined;

  constructor(check: StreamCheck, rulesOfRequest: (bytes: Uint8Array) => CallRules | undefined) {
    this.#check = check;
    this.#rulesOf = rulesOfRequest;
  }

  sent(bytes: Uint8Array): void {
    this.#rules ??= this.#rulesOf(bytes);
  }

  message(): void {
    if (this.#rules !== undefined) this.#check.served(this.#check.begin, this.#rules);
  }

  ended(reason: string): void {
    if (this.#rules !== undefined) this.#check.ended(this.#rules, reason);
  }
}

/** The lease that a renewal names; undefined for a malformed one. */
function leaseOf(bytes: Uint8Array): string | undefined {
  try {
    return `${LeaseKeepAliveRequest.decode(bytes).ID}`;
  } catch {
    return undefined;
  }
}

/** Renewals of leases, each answered in its turn. */
class RenewalJudge implements Judge {
  readonly #check: StreamCheck;
  readonly #asked: { readonly lease: string; readonly moment: Moment }[] = [];
  /** Leases that were asked for on this stream. */
  readonly #leases = new Set<string>();

  constructor(check: StreamCheck) {
    this.#check = check;
  }

  #rules(lease: string): CallRules {
    return {
      served: "local",
      refused: "local",
      hasLeases: true,
      needs: (keysOf) => [{ kind: "user" }, leaseNeed("write", lease, keysOf)],
    };
  }

  sent(bytes: Uint8Array): void {
    const lease = leaseOf(bytes);
    if (lease === undefined) return;
    this.#leases.add(lease);
    this.#asked.push({ lease, moment: this.#check.moment() });
  }

  message(bytes: Uint8Array): void {
    const { ID } = LeaseKeepAliveResponse.decode(bytes);
    const asked = this.#asked.shift();
    if (asked?.lease === `${ID}`) this.#check.served(asked.moment, this.#rules(asked.lease));
  }

  ended(reason: string): void {
    // A refusal of any of them ends the stream.
    this.#check.endedForAny(
      [...this.#leases].map((lease) => this.#rules(lease)),
      reason,
    );
  }
}
