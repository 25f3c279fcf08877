/**
 * HTTP basic authentication, as v2 had it: user and password become a token of v3's Auth, by a
 * login that counts and is limited like every other. The token is kept for a while, because a
 * login costs a bcrypt hash and an entry of the log.
 */
import type { Clock } from "@quorate/host";
import { AuthService, fromLatin1, toLatin1, toUtf8 } from "@quorate/proto";
import { decodeBase64 } from "@quorate/store";
import type { HttpCaller } from "./calls.ts";
import { V2Error } from "./errors.ts";

/** Logins that are kept. */
export const MAX_KEPT_LOGINS = 1000;
/** For so long; a token of v3 lives for five minutes unless --auth-token-ttl says less. */
export const LOGIN_KEPT_MS = 60_000;

interface Kept {
  readonly token: string;
  readonly untilMs: number;
}

export class Logins {
  readonly #clock: Clock;
  readonly #kept = new Map<string, Kept>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get size(): number {
    return this.#kept.size;
  }

  /** Logs a caller in that has a password. Rejects with V2Error, or StatusError of the login. */
  async authenticate(caller: HttpCaller): Promise<void> {
    const { credentials } = caller;
    if (credentials === undefined) return;
    const nowMs = this.#clock.monotonicMs();
    const kept = this.#kept.get(credentials);
    if (kept !== undefined && kept.untilMs > nowMs) {
      caller.useToken(kept.token);
      return;
    }
    const bytes = decodeBase64(credentials);
    const pair = bytes === undefined ? undefined : toLatin1(bytes);
    const colon = pair?.indexOf(":") ?? -1;
    if (pair === undefined || colon < 0) throw unauthorized();
    const name = toUtf8(fromLatin1(pair.slice(0, colon)));
    const password = toUtf8(fromLatin1(pair.slice(colon + 1)));
    const request = { name, password };
    const { token } = await caller.call(AuthService.methods.Authenticate, request);
    this.#keep(credentials, { token, untilMs: nowMs + LOGIN_KEPT_MS });
    caller.useToken(token);
  }

  /** The token of a caller is not valid any more. True if it was kept: another login may help. */
  forget(caller: HttpCaller): boolean {
    const { credentials } = caller;
    return credentials !== undefined && this.#kept.delete(credentials);
  }

  #keep(credentials: string, kept: Kept): void {
    this.#kept.delete(credentials);
    const [oldest] = this.#kept.keys();
    if (this.#kept.size >= MAX_KEPT_LOGINS) this.#kept.delete(oldest);
    this.#kept.set(credentials, kept);
  }
}

/** v2's response to a caller that may not (etcd 3.4: writeKeyNoAuth). */
export function unauthorized(): V2Error {
  return new V2Error("Unauthorized", "Insufficient credentials");
}
