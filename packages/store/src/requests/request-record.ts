/** One kind of request that stands in log entries: how it is checked and applied. */
import type { ErrorName, MessageType } from "@quorate/proto";
import type { AuthState } from "../auth/auth-state.ts";
import type { Alarms } from "../backend/alarms.ts";
import type { Steps } from "../backend/steps.ts";
import type { Lessor } from "../lease/lessor.ts";
import type { Membership } from "../membership/membership.ts";
import type { Mvcc } from "../mvcc/index.ts";
import type { ReadView } from "../mvcc/read-view.ts";

/** Limits of requests that depend on a member's configuration. */
export interface RequestLimits {
  /** Entries of one list of a transaction (--max-txn-ops). */
  readonly maxTxnOps: number;
  /** Why the cluster's version cannot be set to a text; undefined if it can. */
  readonly versionProblem: (version: string) => string | undefined;
}

/** The replicated state that requests work on. */
export interface ApplyState {
  readonly mvcc: Mvcc;
  readonly membership: Membership;
  readonly leases: Lessor;
  readonly alarms: Alarms;
  readonly auth: AuthState;
  /** Index of the entry that is applied. */
  readonly index: number;
}

/** One kind of request: the message Q, and the response R that applying it comes to. */
export interface RequestRecord<Q, R> {
  readonly type: MessageType<Q>;
  /** Decodes a request before it is proposed, where that needs a bound; else `type` does. */
  readonly decodeBounded?: (bytes: Uint8Array, limits: RequestLimits) => Q;
  /**
   * The error of a request that no state makes valid; undefined for a valid one.
   * @throws InvalidRequestError where etcd's API has no error for it
   */
  readonly check: (request: Q, limits: RequestLimits) => ErrorName | undefined;
  /** Whether an alarm CORRUPT refuses the kind (etcd: applierV3Corrupt). */
  readonly refusedWhenCorrupt: boolean;
  /**
   * Estimate of the bytes that it adds to the store; 0 for none. What costs something is refused
   * while an alarm NOSPACE stands (etcd: applierV3Capped).
   */
  readonly costBytes?: (request: Q) => number;
  /** Bytes of records in the store that it writes once more, on top of its own. */
  readonly copiedBytes?: (view: ReadView, request: Q) => number;
  /**
   * Applies the request, or returns the steps that do.
   * @param answered false where no caller waits for the response: what only that needs is not read
   * @throws EtcdError, which is the response then; nothing has changed
   */
  readonly apply: (state: ApplyState, request: Q, answered: boolean) => R | Steps<R>;
}
