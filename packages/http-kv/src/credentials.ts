/**
 * Authorization: Basic, as `curl -u NAME:PASSWORD` sends it with every request. A password costs
 * some 100 ms of a processor to check, so the token of a login is kept for a while:
 *
 *     Basic -> kept for this client? -> its token
 *           -> Auth/Authenticate, through the limits of failed logins -> a token, kept
 *
 * A connection that has shown its password is served as long as it shows that one, whatever others
 * at its address do. To another connection of a client with too many refused logins a kept token is
 * not given either; else it would show whether a password is right, as often as it is asked.
 */
import { hmac } from "@noble/hashes/hmac.js";
import { sha256 } from "@noble/hashes/sha2.js";
import { type Clock, setNewest } from "@quorate/host";
import type { LoginLimits } from "@quorate/member";
import { AuthService, fromBase64, fromUtf8, toLatin1, toUtf8 } from "@quorate/proto";
import type { ExchangeCaller, ServiceCalls } from "@quorate/services";
import { Problem, problemOf } from "./problems.ts";

/** Logins that are kept; beyond, the one that was used longest ago is forgotten. */
export const MAX_KEPT_LOGINS = 1024;
/** A password is checked again so long after it was checked last. */
export const KEPT_LOGIN_MS = 60_000;
/** Longer credentials are refused: a name, a colon and a password of 72 bytes are far shorter. */
export const MAX_CREDENTIAL_CHARS = 2048;

const BASIC = /^basic +/i;

interface Login {
  readonly checkedMs: number;
  readonly token: Promise<string>;
}

export interface CredentialsDeps {
  readonly clock: Clock;
  readonly calls: ServiceCalls;
  /** Whether users and roles are enforced; else nothing is checked, as for gRPC. */
  readonly isEnforced: () => boolean;
  readonly logins: Pick<LoginLimits, "partyOf" | "mayTry" | "mayUseKept">;
  /** Secret of this process: kept logins are found by a keyed hash, not by the password. */
  readonly hashKey: Uint8Array;
}

export class Credentials {
  readonly #deps: CredentialsDeps;
  /** The one that was used last is at the end. */
  readonly #logins = new Map<string, Login>();
  /** The login that a connection has shown the password of, by address and port. */
  readonly #sessions = new Map<string, string>();

  constructor(deps: CredentialsDeps) {
    this.#deps = deps;
  }

  /** Logins that are kept. */
  get size(): number {
    return this.#logins.size;
  }

  /**
   * Runs work for the user that a password proves; once more where the kept token has ended.
   * Nothing has been changed then, as the token was refused.
   * @returns a promise. Rejects as `work` does, with a Problem, or as Auth/Authenticate does
   */
  async proved<T>(caller: ExchangeCaller, work: () => Promise<T>): Promise<T> {
    const sent = caller.authorization;
    await this.prove(caller);
    try {
      return await work();
    } catch (error) {
      const isRefused = problemOf(error).code === "unauthenticated";
      if (!isRefused || !this.forget(sent, caller)) throw error;
      caller.authorization = sent;
      await this.prove(caller);
      return work();
    }
  }

  /**
   * Replaces a password by a token in the caller's evidence; undefined: there is none to replace.
   * @returns a promise. Rejects with a Problem, or as Auth/Authenticate does
   */
  prove(caller: ExchangeCaller): Promise<void> | undefined {
    const sent = caller.authorization;
    if (sent === undefined || !BASIC.test(sent)) return undefined;
    if (!this.#deps.isEnforced()) {
      // As a token that is sent to a cluster without users: it is not looked at.
      caller.authorization = undefined;
      return undefined;
    }
    return this.#prove(caller, sent);
  }

  /** Forgets the login of a request whose token was refused. True: proving it again may help. */
  forget(sent: string | undefined, caller: ExchangeCaller): boolean {
    if (sent === undefined || !BASIC.test(sent)) return false;
    return this.#logins.delete(this.#idOf(sent, this.#deps.logins.partyOf(caller)));
  }

  async #prove(caller: ExchangeCaller, sent: string): Promise<void> {
    const { name, password } = parsed(sent);
    const { clock, logins } = this.#deps;
    const nowMs = clock.monotonicMs();
    const party = logins.partyOf(caller);
    const id = this.#idOf(sent, party);
    const isSession = this.#sessions.get(caller.peerAddress) === id;
    // Who guesses is no session any more, also on the port of one that has ended.
    if (!isSession) this.#sessions.delete(caller.peerAddress);
    const kept = this.#logins.get(id);
    if (kept !== undefined && this.#mayUse(kept, name, party, isSession)) {
      setNewest(this.#logins, id, kept, MAX_KEPT_LOGINS);
      caller.authorization = await kept.token;
      setNewest(this.#sessions, caller.peerAddress, id, MAX_KEPT_LOGINS);
      return;
    }
    const login: Login = {
      checkedMs: nowMs,
      token: this.#authenticate(caller, name, password),
    };
    // What will be refused unlooked at must not take the place of a session's login.
    if (kept === undefined || logins.mayTry(name, party, nowMs))
      setNewest(this.#logins, id, login, MAX_KEPT_LOGINS);
    try {
      caller.authorization = await login.token;
      setNewest(this.#sessions, caller.peerAddress, id, MAX_KEPT_LOGINS);
    } catch (error) {
      if (this.#logins.get(id) === login) this.#logins.delete(id);
      throw error;
    }
  }

  async #authenticate(caller: ExchangeCaller, name: string, password: string): Promise<string> {
    const { calls } = this.#deps;
    const anonymous = caller.withoutEvidence();
    const { Authenticate } = AuthService.methods;
    const { token } = await calls.unary(Authenticate, { name, password }, anonymous);
    return token;
  }

  /** A session is served where its password cannot be checked again for others' failures. */
  #mayUse({ checkedMs }: Login, name: string, party: string, isSession: boolean): boolean {
    const { clock, logins } = this.#deps;
    const nowMs = clock.monotonicMs();
    if (nowMs - checkedMs < KEPT_LOGIN_MS)
      return isSession || logins.mayUseKept(name, party, nowMs);
    return isSession && !logins.mayTry(name, party, nowMs);
  }

  #idOf(sent: string, party: string): string {
    const text = fromUtf8(`${party.length}:${party}${sent}`);
    return toLatin1(hmac(sha256, this.#deps.hashKey, text));
  }
}

/** @throws Problem unauthenticated */
function parsed(sent: string): { readonly name: string; readonly password: string } {
  const bytes =
    sent.length <= MAX_CREDENTIAL_CHARS ? fromBase64(sent.replace(BASIC, "").trim()) : undefined;
  const text = bytes === undefined ? "" : toUtf8(bytes);
  const colon = text.indexOf(":");
  if (colon > 0) return { name: text.slice(0, colon), password: text.slice(colon + 1) };
  throw new Problem(
    "unauthenticated",
    "the header Authorization: Basic does not have the base64 of NAME:PASSWORD",
  );
}
