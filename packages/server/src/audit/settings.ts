/** What the audit log holds, and what happens where it cannot be written. */
import type { Authority } from "@quorate/member";
import { callerOf } from "@quorate/member";
import type { CallContext } from "@quorate/rpc";

export interface AuditSettings {
  /** "request" adds what a request asks for beside its keys; values are hashed even then. */
  readonly level: "metadata" | "request";
  /** Calls about keys are logged for keys with these prefixes alone; none: for all keys. */
  readonly prefixes: readonly Uint8Array[];
  /** Of successful reads every Nth is logged, from 1; failures and all else always are. */
  readonly readSampling: number;
  /** "refuse" fails writes while the log cannot be written. */
  readonly onFailure: "drop" | "refuse";
}

/** The proved identity of a call's party; undefined for none. */
export interface ProvedIdentity {
  readonly user: string;
  readonly provedBy: string;
  /** The roles that a token lists. */
  readonly roles?: readonly string[] | undefined;
}

/** Where the bytes of a line are written. */
export interface LineSpace {
  readonly bytes: Uint8Array;
  readonly at: number;
}

/** Where lines go. The queue behind it is bounded. */
export interface AuditSink {
  /** False while lines cannot be written: the disk is full, a pipe has no reader. */
  readonly isWritable: boolean;
  /** Takes a line, without its end. Drops and counts it where the queue is full. */
  write(line: string): void;
  /**
   * Space for a line as bytes, valid until `wrote`; undefined, and a dropped line is counted, where
   * the queue is full.
   */
  space(mostBytes: number): LineSpace | undefined;
  /** The line, with its end, is in the space. @param end the place behind it */
  wrote(end: number): void;
}

/**
 * The identity by which a call was served. It was found out when the call was admitted, so it is
 * at hand; undefined where it is not any more: the token has ended, the user is deleted.
 */
export function servedIdentity(
  authority: Pick<Authority, "identify">,
  context: CallContext,
): ProvedIdentity | undefined {
  try {
    const identity = authority.identify(callerOf(context));
    if (!(identity instanceof Promise)) return identity;
    identity.catch(() => {});
  } catch {
    // The call was refused for it.
  }
  return undefined;
}
