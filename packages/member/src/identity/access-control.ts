/**
 * Users and roles of one member: who its callers are, what they may do, and what follows when
 * users or roles change.
 *
 *     entry applied -> AuthState (store) -> tokens noted or ended
 *                                        -> watches, lease streams, snapshots looked at again
 */
import type { Clock } from "@quorate/host";
import type { Raft } from "@quorate/raft";
import type { AuthObserver, Store } from "@quorate/store";
import type { Reads } from "../loop/reads.ts";
import type { Slices } from "../reads/slices.ts";
import type { StoreRef } from "../reads/store-ref.ts";
import type { WatchHub } from "../watch/index.ts";
import { AuthChanges } from "./auth-changes.ts";
import { LoginLimits } from "./login-limits.ts";
import { type PasswordHasher, Passwords } from "./passwords.ts";
import { simpleProvider } from "./simple-tokens.ts";
import { TokenEnds } from "./token-ends.ts";
import type { TokenProvider } from "./token-provider.ts";
import { UserAuthority } from "./user-authority.ts";

/** What users' secrets need from the outside. */
export interface Secrets {
  /** Bytes from a source that is fit for secrets. */
  readonly randomBytes: (length: number) => Uint8Array;
  readonly hasher: PasswordHasher;
  /** Hashes that the hasher computes at once. */
  readonly threads: number;
  /** Tokens of another kind than etcd's simple ones (--auth-token). */
  readonly tokens?: TokenProvider | undefined;
}

export interface AccessControlDeps {
  readonly clock: Clock;
  /** Undefined: passwords are refused, and no token is made. */
  readonly secrets: Secrets | undefined;
  readonly bcryptCost: number;
  /** --trusted-proxies. */
  readonly trustedProxies: ReadonlySet<string>;
  readonly tokenTtlSeconds: number;
  readonly clientCertAuth: boolean;
  readonly store: StoreRef;
  readonly raft: Pick<Raft, "appliedIndex">;
  readonly reads: Reads;
  readonly slices: Slices;
  readonly watches: WatchHub;
}

/** As in etcd, where the option is 0. */
const DEFAULT_TTL_SECONDS = 300;

const NO_SECRETS: Secrets = {
  randomBytes: () => {
    throw new Error("this member makes no tokens");
  },
  hasher: {
    hash: () => Promise.reject(new Error("this member hashes no passwords")),
    verify: () => Promise.reject(new Error("this member checks no passwords")),
    close: () => {},
  },
  threads: 1,
};

export class AccessControl implements AuthObserver {
  readonly authority: UserAuthority;
  readonly tokens: TokenProvider;
  readonly passwords: Passwords;
  readonly logins: LoginLimits;
  /** For calls that permission can be taken from. */
  readonly changes: AuthChanges;
  readonly #deps: AccessControlDeps;
  readonly #tokenEnds: TokenEnds;
  #isEnabled = false;

  constructor(deps: AccessControlDeps) {
    this.#deps = deps;
    const secrets = deps.secrets ?? NO_SECRETS;
    this.changes = new AuthChanges(deps.clock);
    this.logins = new LoginLimits(deps.trustedProxies);
    this.tokens =
      secrets.tokens ??
      simpleProvider(
        {
          clock: deps.clock,
          randomBytes: secrets.randomBytes,
          raft: deps.raft,
          reads: deps.reads,
        },
        deps.tokenTtlSeconds || DEFAULT_TTL_SECONDS,
      );
    this.passwords = new Passwords({ ...secrets, clock: deps.clock }, deps.bcryptCost);
    this.#tokenEnds = new TokenEnds(deps.clock, () => this.changed());
    this.authority = new UserAuthority({
      tokenEnds: this.#tokenEnds,
      store: deps.store,
      tokens: this.tokens,
      reads: deps.reads,
      clientCertAuth: deps.clientCertAuth,
      slices: deps.slices,
    });
  }

  /** Follows a store, the first or one that took the place of another. */
  attach(store: Store): void {
    store.auth.observer = this;
    // Users may have been deleted, and passwords changed, without an entry that was applied here.
    this.tokens.disabled();
    this.changed();
  }

  authenticated(user: string, simpleToken: string, index: number): void {
    this.tokens.assigned(user, simpleToken, index);
  }

  invalidated(user: string): void {
    this.tokens.invalidated(user);
  }

  changed(): void {
    const { isEnabled } = this.#deps.store.current.auth;
    if (this.#isEnabled && !isEnabled) this.tokens.disabled();
    this.#isEnabled = isEnabled;
    // Without enforcement everything is permitted.
    if (!isEnabled) return;
    this.#deps.watches.recheck();
    this.changes.changed();
  }

  close(): void {
    this.#tokenEnds.close();
    this.tokens.disabled();
    this.passwords.close();
  }
}
