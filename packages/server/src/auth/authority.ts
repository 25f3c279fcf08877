/**
 * Who a caller is, and what it may have by the users and roles that are applied here (etcd:
 * EtcdServer.AuthInfoFromCtx, doSerialize). What goes through the log is decided when it is
 * applied, by the store; all else here.
 *
 *     token in the metadata       -> its user, or InvalidAuthToken
 *     else, --client-cert-auth    -> the common name of the certificate
 *     else                        -> no user
 */
import { EMPTY, EtcdError, errorOf, fromLatin1 } from "@quorate/proto";
import {
  ANONYMOUS,
  type AuthIdentity,
  authorize,
  type KeyRange,
  keysOperation,
  leaseOperations,
  type Operation,
  type Operations,
  ROOT,
  runSteps,
  type Steps,
  type Store,
  txnOperations,
  verdictInSteps,
} from "@quorate/store";
import type { Access, Admission, Authority } from "../member/authority.ts";
import type { Caller, Identity } from "../member/caller.ts";
import { invalidToken, type TokenProvider, type TokenUser } from "./token-provider.ts";

const BEARER = "Bearer ";
const OPEN_END = new Uint8Array(1);

export interface AuthorityDeps {
  /** The store in use. */
  readonly store: () => Store;
  readonly tokens: TokenProvider;
  /** --client-cert-auth: the common name of a certificate is the user. */
  readonly clientCertAuth: boolean;
  /** Runs a check of many keys beside other work. */
  readonly run: (caller: Caller, steps: () => Steps<void>) => Promise<void>;
}

export class UserAuthority implements Authority {
  readonly #deps: AuthorityDeps;

  constructor(deps: AuthorityDeps) {
    this.#deps = deps;
  }

  get isEnforced(): boolean {
    return this.#deps.store().auth.isEnabled;
  }

  identify(caller: Caller): Identity | undefined | Promise<Identity | undefined> {
    if (!this.isEnforced) return undefined;
    if (caller.origin === "member") return this.memberIdentity();
    if (caller.identity !== undefined) return caller.identity;
    const { token } = caller;
    if (token !== undefined) return this.#byToken(token);
    return this.#byCertificate(caller);
  }

  #byToken(token: string): Identity | Promise<Identity> {
    const text = token.startsWith(BEARER) ? token.slice(BEARER.length) : token;
    const user = this.#deps.tokens.recognise(text);
    return user instanceof Promise
      ? user.then((one) => this.#proved(one))
      : this.#proved(user);
  }

  #proved(proof: TokenUser | undefined): Identity {
    if (proof === undefined) throw invalidToken();
    const authRevision = proof.authRevision ?? this.#deps.store().auth.revision;
    return { user: proof.user, authRevision, provedBy: "token" };
  }

  #byCertificate({ commonName, metadata }: Caller): Identity | undefined {
    if (!this.#deps.clientCertAuth || commonName === undefined) return undefined;
    return { user: commonName, authRevision: this.#deps.store().auth.revision, provedBy: "certificate" };
  }
}
