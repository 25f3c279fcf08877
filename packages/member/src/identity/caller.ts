/**
 * The caller: the party on whose behalf a request runs. Every way into the member takes one.
 *
 *     rpc's call -> callerOf -> member.propose(caller, ...)   identity in the entry's header
 *                               member.read(caller, ...)      permission before and after
 *                               member.watch(caller, ...)     permission for each watch
 *
 * A caller carries the evidence of an identity (a token, a certificate's name), not the verdict:
 * `Authority` (authority.ts) turns evidence into an `Identity` when the request is admitted.
 */
import { type CallContext, type CallTrace, clientOf } from "@quorate/rpc";
import { type AuthState, ROOT } from "@quorate/store";

/** A user, and the state of the users and roles by which it was recognised. */
export interface Identity {
  readonly user: string;
  /** Revision of the users and roles that the proof rests on; it goes into the entry's header. */
  readonly authRevision: number;
  readonly provedBy: "token" | "certificate" | "member";
  /**
   * The roles that an identity provider's token lists, in the order of their bytes; undefined:
   * those that the user has in the store.
   */
  readonly roles?: readonly string[] | undefined;
  /** Wall-clock time at which such roles end; undefined for never. */
  readonly endsMs?: number | undefined;
}

/** The party on whose behalf a request runs. */
export interface Caller {
  /**
   * An identity that is settled before the call, such as that of a session which was checked when
   * it began. Undefined where it is to be found out from the evidence below, which is the rule.
   */
  readonly identity: Identity | undefined;
  /**
   * "member" for work of this member's own (revoking expired leases, alarms, compaction), which
   * needs no permission; "client" for all that comes from outside.
   */
  readonly origin: "client" | "member";
  /** Key of fairness: the certificate's name, or the host of the address; "" for the member. */
  readonly client: string;
  /** The remote address, "host:port", which names the connection; "" for the member. */
  readonly address: string;
  /** Common name (CN) of the client certificate that TLS verified; undefined without one. */
  readonly commonName: string | undefined;
  /**
   * The token of the metadata, as it was sent: the field "token", else "authorization"
   * (etcd: rpctypes.TokenFieldNameGRPC and TokenFieldNameSwagger). Undefined without one.
   */
  readonly token: string | undefined;
  /** The first value of a metadata field (lower case); undefined without one. */
  metadata(key: string): string | undefined;
  /** End of the caller's patience, in the clock's monotonic milliseconds; undefined: none. */
  readonly deadlineMs: number | undefined;
  /** The call's trace; undefined for a call that is not sampled. */
  readonly trace: CallTrace | undefined;
  /** True once the caller gave up, its deadline passed, or its connection ended. */
  readonly cancelled: boolean;
  /** Runs `listener` when `cancelled` turns true, at once if it is. One listener at most. */
  onCancel(listener: () => void): void;
}

/** The caller of a call of rpc's. What needs work (names, tokens) is worked out on first use. */
export function callerOf(context: CallContext): Caller {
  return new RpcCaller(context);
}

/** The identity of the member's own work: root, at the revision that is applied here now. */
export function memberIdentity(auth: AuthState): Identity | undefined {
  return auth.isEnabled
    ? { user: ROOT, authRevision: auth.revision, provedBy: "member" }
    : undefined;
}

/** This member itself. */
export const MEMBER_CALLER: Caller = {
  identity: undefined,
  origin: "member",
  client: "",
  address: "",
  commonName: undefined,
  token: undefined,
  metadata: () => undefined,
  deadlineMs: undefined,
  trace: undefined,
  cancelled: false,
  onCancel: () => {},
};

/**
 * The same caller for work that goes on when the call is given up, such as taking back the key of
 * a lock that is not waited for any more; and for a call whose one listener has another owner.
 */
export function uncancelled(caller: Caller): Caller {
  return new UncancelledCaller(caller);
}

/** The same caller with the same rights, for work whose cost counts as the member's own. */
export function asMembersOwn(caller: Caller): Caller {
  return new UncancelledCaller(caller, MEMBER_CALLER.client);
}

class RpcCaller implements Caller {
  readonly identity: undefined;
  readonly #context: CallContext;
  #client: string | undefined;

  constructor(context: CallContext) {
    this.#context = context;
  }

  get origin(): "client" {
    return "client";
  }

  get client(): string {
    this.#client ??= clientOf(this.#context);
    return this.#client;
  }

  get address(): string {
    return this.#context.peerAddress;
  }

  get commonName(): string | undefined {
    return this.#context.peerCommonName;
  }

  get token(): string | undefined {
    return this.#context.metadata("token") ?? this.#context.metadata("authorization");
  }

  metadata(key: string): string | undefined {
    return this.#context.metadata(key);
  }

  get deadlineMs(): number | undefined {
    return this.#context.deadlineMs;
  }

  get trace(): CallTrace | undefined {
    return this.#context.trace;
  }

  get cancelled(): boolean {
    return this.#context.cancelled;
  }

  onCancel(listener: () => void): void {
    this.#context.onCancel(listener);
  }
}

class UncancelledCaller implements Caller {
  readonly #caller: Caller;
  readonly client: string;
  readonly cancelled = false;

  constructor(caller: Caller, client: string = caller.client) {
    this.#caller = caller;
    this.client = client;
  }

  get identity(): Identity | undefined {
    return this.#caller.identity;
  }

  get origin(): "client" | "member" {
    return this.#caller.origin;
  }

  get address(): string {
    return this.#caller.address;
  }

  get commonName(): string | undefined {
    return this.#caller.commonName;
  }

  get token(): string | undefined {
    return this.#caller.token;
  }

  metadata(key: string): string | undefined {
    return this.#caller.metadata(key);
  }

  get deadlineMs(): undefined {
    return undefined;
  }

  get trace(): CallTrace | undefined {
    return this.#caller.trace;
  }

  onCancel(): void {}
}
