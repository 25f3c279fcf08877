/**
 * Who a caller is, and what it may have by the users and roles that are applied here (etcd:
 * EtcdServer.AuthInfoFromCtx, doSerialize). What goes through the log is decided when it is
 * applied, by the store; all else here.
 *
 *     token in the metadata       -> its user, or InvalidAuthToken
 *       with --auth-jwt-roles-claim -> its user and its roles; none of the store's
 *     else, --client-cert-auth    -> the common name of the certificate
 *     else                        -> no user
 */
import { EMPTY, type ErrorName, EtcdError, errorOf, fromLatin1, toLatin1 } from "@quorate/proto";
import {
  type AttachedKeys,
  type AuthIdentity,
  authorize,
  type KeyRange,
  keysOperation,
  type LeaseKeys,
  leaseOperations,
  type Operation,
  operationsOf,
  type Steps,
  type Store,
  txnOperations,
  userVerdict,
  verdictInSteps,
  verdictNow,
} from "@quorate/store";
import type { Reads } from "../loop/reads.ts";
import type { Slices } from "../reads/slices.ts";
import type { StoreRef } from "../reads/store-ref.ts";
import type { Access, Admission, Authority, WatchAuthority } from "./authority.ts";
import { type Caller, type Identity, memberIdentity } from "./caller.ts";
import type { TokenEnds } from "./token-ends.ts";
import type { TokenProvider, TokenUser } from "./token-provider.ts";

const BEARER = "Bearer ";
const OPEN_END = new Uint8Array(1);
/** Sent by etcd's HTTP gateway, whose own certificate stands for no user. */
const GATEWAY_FIELD = "grpcgateway-accept";

export interface AuthorityDeps {
  readonly store: StoreRef;
  readonly tokens: TokenProvider;
  readonly tokenEnds: TokenEnds;
  readonly reads: Pick<Reads, "wait">;
  /** --client-cert-auth: the common name of a certificate is the user. */
  readonly clientCertAuth: boolean;
  /** Runs checks of many keys beside other work. */
  readonly slices: Pick<Slices, "run">;
}

export class UserAuthority implements Authority {
  readonly #deps: AuthorityDeps;

  constructor(deps: AuthorityDeps) {
    this.#deps = deps;
  }

  /** Whether callers need permission, by what is applied here now. */
  get isEnforced(): boolean {
    return this.#deps.store.current.auth.isEnabled;
  }

  identify(caller: Caller): Identity | undefined | Promise<Identity | undefined> {
    if (!this.isEnforced) return undefined;
    if (caller.origin === "member") return memberIdentity(this.#deps.store.current.auth);
    if (caller.identity !== undefined) return caller.identity;
    const { token } = caller;
    return token === undefined ? this.#byCertificate(caller) : this.#byToken(token);
  }

  admit(caller: Caller, access: Access): Admission | Promise<Admission> {
    if (!this.isEnforced) return FOR_ALL;
    const identity = this.identify(caller);
    if (identity instanceof Promise)
      return identity.then((one) => this.#admit(caller, one, access));
    return this.#admit(caller, identity, access);
  }

  /**
   * Permits what was permitted before once more, by users and roles as they are now.
   * @throws EtcdError InvalidAuthToken where the caller must log in again; else PermissionDenied
   */
  async recheck(caller: Caller, access: Access): Promise<void> {
    try {
      if (!this.isEnforced) return;
      const identity = await this.identify(caller);
      if (identity !== undefined && this.isAnother(identity)) throw errorOf("PermissionDenied");
      await this.#admit(caller, identity && this.#asOfNow(identity), access);
    } catch (error) {
      const isToken = error instanceof EtcdError && error.code === "InvalidAuthToken";
      throw isToken ? error : errorOf("PermissionDenied");
    }
  }

  watching(caller: Caller): WatchAuthority {
    return new Watching(this, caller);
  }

  /**
   * Looks at a caller's token while none is asked for, for what goes on when enforcement begins:
   * a signature takes a while to check, and a watch is looked at in one go.
   */
  prepare({ token, origin }: Caller): void {
    if (token !== undefined && origin === "client") this.#deps.tokens.prepare?.(bare(token));
  }

  #byToken(token: string): Identity | Promise<Identity> {
    const user = this.#deps.tokens.recognise(bare(token));
    return user instanceof Promise ? user.then((one) => this.#proved(one)) : this.#proved(user);
  }

  #proved(proof: TokenUser | undefined): Identity | Promise<Identity> {
    if (proof === undefined) throw errorOf("InvalidAuthToken");
    const { auth } = this.#deps.store.current;
    const { user, roles, endsMs } = proof;
    const authRevision = proof.authRevision ?? auth.revision;
    if (roles !== undefined) return { user, authRevision, provedBy: "token", roles, endsMs };
    const identity = { user, authRevision, provedBy: "token" } as const;
    if (auth.user(user) !== undefined) return this.#ofNow(identity);
    // Deleted, and its signed tokens with it; or its creation is not applied here yet.
    return this.#deps.reads.wait().then(() => this.#ofNow(identity));
  }

  /** @throws EtcdError InvalidAuthToken where the user was deleted, also if its name came back */
  #ofNow(identity: Identity): Identity {
    const { auth } = this.#deps.store.current;
    const { user } = identity;
    if (auth.user(user) === undefined || userVerdict(auth, userOf(identity)) !== undefined)
      throw errorOf("InvalidAuthToken");
    return identity;
  }

  #byCertificate(caller: Caller): Identity | undefined {
    const user = caller.commonName;
    if (!this.#deps.clientCertAuth || user === undefined) return undefined;
    if (caller.metadata(GATEWAY_FIELD) !== undefined) return undefined;
    const authRevision = this.#deps.store.current.auth.revision;
    return { user, authRevision, provedBy: "certificate" };
  }

  #admit(
    caller: Caller,
    identity: Identity | undefined,
    access: Access,
  ): Admission | Promise<Admission> {
    const { auth, lessor } = this.#deps.store.current;
    const user = userOf(identity);
    if (LASTS.has(access.kind)) this.noteEnd(identity);
    const admission = (refused: ErrorName | undefined): Admission => {
      if (refused !== undefined) throw errorOf(refused);
      return IS_READ.has(access.kind) ? { confirm: () => this.#confirm(identity) } : FOR_ALL;
    };
    const operations = accessOperations(access, lessor);
    if (isShort(access, lessor)) return admission(verdictNow(auth, user, operations));
    return this.#verdict(caller, () =>
      verdictInSteps(auth, user, operations, lessor.stepKeys),
    ).then(admission);
  }

  /** Checks many keys beside other work. */
  async #verdict(
    caller: Caller,
    steps: () => Steps<ErrorName | undefined>,
  ): Promise<ErrorName | undefined> {
    return this.#deps.slices.run(caller, steps);
  }

  #confirm(identity: Identity | undefined): void {
    const { auth } = this.#deps.store.current;
    if (!auth.isEnabled || identity === undefined) return;
    if (identity.authRevision !== auth.revision) throw errorOf("AuthOldRevision");
  }

  /**
   * The first reason why a user may not read a range; undefined: it may.
   * @param asOfNow whether the user counts as recognised by users and roles of now
   */
  readVerdict(
    identity: Identity | undefined,
    range: KeyRange,
    asOfNow: boolean,
  ): ErrorName | undefined {
    const rangeEnd = range.single
      ? EMPTY
      : range.to === undefined
        ? OPEN_END
        : fromLatin1(range.to);
    const operation = keysOperation("read", { key: fromLatin1(range.key), rangeEnd });
    const user = asOfNow && identity !== undefined ? this.#asOfNow(identity) : identity;
    return authorize(this.#deps.store.current.auth, userOf(user), operation);
  }

  /** Has streams looked at again when the roles of a token end. */
  noteEnd(identity: Identity | undefined): void {
    this.#deps.tokenEnds.note(identity?.endsMs);
  }

  /** Whether the roles of an identity have ended with its token. */
  hasEnded(identity: Identity): boolean {
    return this.#deps.tokenEnds.hasEnded(identity.endsMs);
  }

  /** Whether the user of an identity was deleted, also if its name came back. */
  isAnother(identity: Identity): boolean {
    return userVerdict(this.#deps.store.current.auth, userOf(identity)) !== undefined;
  }

  #asOfNow(identity: Identity): Identity {
    return { ...identity, authRevision: this.#deps.store.current.auth.revision };
  }
}

/** A token without the word before it. */
function bare(token: string): string {
  return token.startsWith(BEARER) ? token.slice(BEARER.length) : token;
}

/** A verdict that is not looked at again. */
const FOR_ALL: Admission = { confirm: () => {} };

/** What returns data for which users and roles must still be the same when it has been read. */
const IS_READ: ReadonlySet<Access["kind"]> = new Set<Access["kind"]>([
  "range",
  "txn",
  "leaseTimeToLive",
  "leaseLeases",
]);

/** What goes on for long, and is looked at again meanwhile. */
const LASTS: ReadonlySet<Access["kind"]> = new Set<Access["kind"]>(["leaseKeepAlive", "snapshot"]);

function userOf(identity: Identity | undefined): AuthIdentity {
  if (identity?.roles !== undefined) {
    const { user, authRevision, roles } = identity;
    return { username: user, authRevision, roles };
  }
  return { username: identity?.user ?? "", authRevision: identity?.authRevision ?? 0 };
}

/** The user of a stream of watches, recognised at each watch that it makes. */
class Watching implements WatchAuthority {
  readonly #authority: UserAuthority;
  readonly #caller: Caller;
  #identity: Identity | undefined;

  constructor(authority: UserAuthority, caller: Caller) {
    this.#authority = authority;
    this.#caller = caller;
  }

  ready(): Promise<void> | undefined {
    if (!this.#authority.isEnforced) this.#authority.prepare(this.#caller);
    const identity = this.#evidence();
    return identity instanceof Promise ? identity.then(() => {}) : undefined;
  }

  forbids(range: KeyRange): string | undefined {
    if (!this.#authority.isEnforced) return undefined;
    try {
      const identity = this.#authority.identify(this.#caller);
      if (identity instanceof Promise) {
        identity.catch(() => {});
        throw errorOf("InvalidAuthToken");
      }
      this.#identity = identity;
      this.#authority.noteEnd(identity);
      return textOf(this.#authority.readVerdict(identity, range, false));
    } catch (error) {
      return textOf(error instanceof EtcdError ? error.code : "PermissionDenied");
    }
  }

  revoked(range: KeyRange): string | undefined {
    if (!this.#authority.isEnforced) return undefined;
    const identity = this.#identity;
    if (identity !== undefined && this.#authority.hasEnded(identity))
      return textOf("InvalidAuthToken");
    this.#authority.noteEnd(identity);
    // A watch from before enforcement: the evidence of its caller is looked at for the first time.
    const refused =
      identity === undefined
        ? this.forbids(range)
        : this.#authority.isAnother(identity)
          ? "another user has the name now"
          : this.#authority.readVerdict(identity, range, true);
    return refused === undefined ? undefined : textOf("PermissionDenied");
  }

  #evidence(): ReturnType<Authority["identify"]> {
    try {
      return this.#authority.identify(this.#caller);
    } catch {
      // It is refused when the watch is made.
      return undefined;
    }
  }
}

/** The words of cancel_reason: Go's text of a gRPC error, as etcd has it, of one of four. */
function textOf(refused: ErrorName | undefined): string | undefined {
  switch (refused) {
    case undefined:
      return undefined;
    case "InvalidAuthToken":
      return reason("Unauthenticated", refused);
    case "AuthOldRevision":
    case "UserEmpty":
      return reason("InvalidArgument", refused);
    default:
      return reason("PermissionDenied", "PermissionDenied");
  }
}

function reason(code: string, name: ErrorName): string {
  return `rpc error: code = ${code} desc = ${errorOf(name).message}`;
}

/** What an access needs. */
function* accessOperations(access: Access, leases: Store["lessor"]): Generator<Operation> {
  switch (access.kind) {
    case "range":
      yield keysOperation("read", access.request);
      break;
    case "txn":
      yield* txnOperations(access.request, leases);
      break;
    case "deleteRange":
      yield* operationsOf("deleteRange", access.request, leases);
      break;
    case "leaseTimeToLive":
      yield { kind: "authenticated" };
      if (access.request.keys) yield* leaseOperations("read", access.request.ID, leases);
      break;
    case "leaseKeys":
      yield { kind: "lease", access: "read", keys: listedKeys(access.request, leases.stepKeys) };
      break;
    case "leaseKeepAlive":
      yield { kind: "authenticated" };
      yield* leaseOperations("write", access.request, leases);
      break;
    case "leaseLeases":
      yield { kind: "authenticated" };
      for (const { id } of leases.all()) yield* leaseOperations("read", id, leases);
      break;
    case "alarms":
    case "status":
    case "memberList":
      yield { kind: "authenticated" };
      break;
    default:
      yield { kind: "root" };
  }
}

/** Keys that are known otherwise than by their lease. */
function listedKeys(keys: readonly Uint8Array[], stepKeys: number): AttachedKeys {
  return {
    isEmpty: keys.length === 0,
    *areCovered(permissions, access) {
      for (const [at, key] of keys.entries()) {
        if (at % stepKeys === stepKeys - 1) yield;
        if (!permissions.coversKey(access, toLatin1(key))) return false;
      }
      return true;
    },
  };
}

function isShort(access: Access, leases: LeaseKeys & { readonly count: number }): boolean {
  const keyCount = (id: bigint) => leases.mostKeysOf(id);
  const { stepKeys } = leases;
  if (access.kind === "leaseLeases") return leases.count === 0;
  if (access.kind === "leaseKeys") return access.request.length <= stepKeys;
  if (access.kind === "leaseKeepAlive") return keyCount(access.request) <= stepKeys;
  if (access.kind !== "leaseTimeToLive") return true;
  return !access.request.keys || keyCount(access.request.ID) <= stepKeys;
}
