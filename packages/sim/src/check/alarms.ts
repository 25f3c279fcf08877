/** Which alarms are raised by the log, and what they must refuse. */
import {
  AlarmRequest,
  AlarmRequest_AlarmAction,
  AlarmType,
  type ErrorName,
  type InternalRaftRequest,
} from "@quorate/proto";
import type { ModelRequest, ModelTxn } from "../base/model.ts";

/** Requests that a store which differs from others must not apply. */
const NOT_WHEN_CORRUPT = [
  "put",
  "range",
  "deleteRange",
  "txn",
  "compaction",
  "leaseGrant",
  "leaseRevoke",
] as const;

export class AlarmBook {
  readonly #raised = new Set<string>();
  readonly #onCorrupt: (memberId: bigint) => void;
  /** How often each kind was raised. */
  readonly counts = { noSpace: 0, corrupt: 0 };

  /** @param onCorrupt called with each alarm CORRUPT that was not raised before */
  constructor(onCorrupt: (memberId: bigint) => void) {
    this.#onCorrupt = onCorrupt;
  }

  /** Whether members are known to differ. */
  get isCorrupt(): boolean {
    return this.#has(AlarmType.CORRUPT);
  }

  /** Whether the cluster takes no more writes that add. */
  get isNoSpace(): boolean {
    return this.#raised.size > 0 && this.#has(AlarmType.NOSPACE);
  }

  #has(type: AlarmType): boolean {
    return [...this.#raised].some((key) => key.startsWith(`${type} `));
  }

  /**
   * The error that a request must come to for an alarm's sake, undefined for none. Takes note of
   * what changes the alarms.
   */
  applied(internal: InternalRaftRequest, request: ModelRequest | undefined): ErrorName | undefined {
    if (internal.alarm !== undefined) {
      this.#change(AlarmRequest.decode(internal.alarm));
      return undefined;
    }
    if (this.#raised.size === 0) return undefined;
    if (this.#has(AlarmType.CORRUPT) && refusesWhenCorrupt(internal)) return "Corrupt";
    return this.#has(AlarmType.NOSPACE) && adds(internal, request) ? "NoSpace" : undefined;
  }

  /** An alarm is raised from the beginning on. */
  begin(memberId: bigint, type: AlarmType): void {
    this.#raised.add(`${type} ${memberId}`);
  }

  #change({ action, memberID, alarm }: AlarmRequest): void {
    const key = `${alarm} ${memberID}`;
    if (action === AlarmRequest_AlarmAction.DEACTIVATE) this.#raised.delete(key);
    if (action !== AlarmRequest_AlarmAction.ACTIVATE || this.#raised.has(key)) return;
    this.#raised.add(key);
    if (alarm === AlarmType.NOSPACE) this.counts.noSpace++;
    else {
      this.counts.corrupt++;
      this.#onCorrupt(memberID);
    }
  }
}

/** Whether an alarm CORRUPT refuses a request. */
export function refusesWhenCorrupt(internal: InternalRaftRequest): boolean {
  return NOT_WHEN_CORRUPT.some((kind) => internal[kind] !== undefined);
}

/** Whether a request may make the store larger, whatever its comparisons come to. */
function adds(internal: InternalRaftRequest, request: ModelRequest | undefined): boolean {
  if (internal.leaseGrant !== undefined || request?.kind === "put") return true;
  return request?.kind === "txn" && mayPut(request);
}

/** Whether a transaction has a put, in one of its branches or in one within. */
export function mayPut({ success, failure }: ModelTxn): boolean {
  return [...success, ...failure].some(
    (op) => op.kind === "put" || (op.kind === "txn" && mayPut(op)),
  );
}
