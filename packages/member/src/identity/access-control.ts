/**
 * Users and roles of one member: who its callers are, what they may do, and what follows when
 * users or roles change.
 *
 *     entry applied -> AuthState (store) -> tokens noted or ended
 *                                        -> watches, lease streams, snapshots looked at again
 */
import type { Clock } from "@quorate/host";
import type { AuthObserver, Steps, Store } from "@quorate/store";
import { AuthChanges } from "./auth-changes.ts";
import type { Caller } from "./caller.ts";
import { LoginLimits } from "./login-limits.ts";
import { type PasswordHasher, Passwords } from "./passwords.ts";
import { TokenEnds } from "./token-ends.ts";
import { simpleProvider, type TokenProvider } from "./token-provider.ts";
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
  store(): Store;
  appliedIndex(): number;
  linearizable(): Promise<void>;
  run<T>(caller: Caller, steps: () => Steps<T>): Promise<T>;
  /** Has every watch looked at again. */
  recheckWatches(): void;
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
          appliedIndex: () => deps.appliedIndex(),
          linearizable: () => deps.linearizable(),
        },
        deps.tokenTtlSeconds || DEFAULT_TTL_SECONDS,
      );
    this.passwords = new Passwords(secrets.hasher, {
      cost: deps.bcryptCost,
      threads: secrets.threads,
    });
    this.#tokenEnds = new TokenEnds(deps.clock, () => this.changed());
    this.authority = new UserAuthority({
      tokenEnds: this.#tokenEnds,
      store: () => deps.store(),
      tokens: this.tokens,
      linearizable: () => deps.linearizable(),
      clientCertAuth: deps.clientCertAuth,
      run: (caller, steps) => deps.run(caller, steps),
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
    const { isEnabled } = this.#deps.store().auth;
    if (this.#isEnabled && !isEnabled) this.tokens.disabled();
    this.#isEnabled = isEnabled;
    // Without enforcement everything is permitted.
    if (!isEnabled) return;
    this.#deps.recheckWatches();
    this.changes.changed();
  }

  close(): void {
    this.#tokenEnds.close();
    this.tokens.disabled();
    this.passwords.close();
  }
}
