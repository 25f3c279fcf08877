/** Who a client of the simulator is, and how it proves that. */
import type { Credential } from "../exchanges.ts";

/** A token that a client was given, or has made up. */
export interface Session {
  readonly token: string;
  /** Whose it is, or is said to be. */
  readonly user: string;
  /** The entry that made it; Infinity for one that no entry made. */
  readonly index: number;
  /** Of a signed token: the auth revision that it names. */
  readonly revision: number | undefined;
  /** The roles that it lists, of an identity provider's token. */
  readonly roles: readonly string[] | undefined;
  /** Of a signed token: when it ends, in the world's milliseconds. */
  readonly endsMs: number;
  /** When its client received it. */
  readonly madeMs: number;
  /** When a client last used it, anywhere. */
  lastUsedMs: number;
}

/** A client's identity in one call or stream. */
export interface Identity {
  /** The user that it can prove to be; empty: none. */
  readonly user: string;
  readonly proof: "certificate" | "token" | "forged" | "none";
  readonly credential: Credential;
  readonly session: Session | undefined;
}

/** A caller that brings no evidence. */
export const NO_IDENTITY: Identity = {
  user: "",
  proof: "none",
  credential: {},
  session: undefined,
};

/** Who has a certificate with a name in it. */
export function byCertificate(user: string): Identity {
  return { user, proof: "certificate", credential: { commonName: user }, session: undefined };
}

/** The user of a session. */
export function bySession(session: Session): Identity {
  const { user, token } = session;
  return { user, proof: "token", credential: { token }, session };
}

/** Who has made a token up. */
export function byForgery(token: string): Identity {
  return { user: "", proof: "forged", credential: { token }, session: undefined };
}

/** An identity in words. */
export function nameOf({ user, proof, session }: Identity): string {
  if (proof === "none") return "a client without a user";
  if (proof === "forged") return "a forger";
  return `${user} by ${session === undefined ? "certificate" : session.token}`;
}
