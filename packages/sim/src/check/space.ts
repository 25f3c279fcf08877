/**
 * What quotas and alarms stop, as clients see it (what is applied under an alarm is judged by
 * SIM-5):
 *
 *   QUOTA-1  a member that has no space for a put takes none: what is called there while the put
 *            and the store together reach the quota, and
 *            ends while they still do, is not answered
 *   QUOTA-2  a put is refused for want of space only where there is none, or under an alarm NOSPACE
 *   ALARM-1  want of space refuses nothing that adds nothing: reads, deletions, transactions
 *            without a put
 *   ALARM-2  nothing is refused as corrupt before an alarm CORRUPT was raised
 */

import type { Member } from "@quorate/member";
import { errorNameOf, fromLatin1, PutRequest } from "@quorate/proto";
import { putCostBytes, type Store } from "@quorate/store";
import type { ModelRequest } from "../base/model.ts";
import { type Operation, words } from "../base/operation.ts";
import { mayPut } from "./alarms.ts";
import { type Safety, violate } from "./safety.ts";

/** The end of a lease frees its record: so much of what is used may go without a compaction. */
const MAX_LEASE_RECORD_BYTES = 64;

/** How a member stood when it was asked. */
export interface SpaceBefore {
  readonly member: Member | undefined;
  readonly store: Store | undefined;
  readonly usedBytes: number;
  readonly compactedRevision: number;
  readonly isCompacting: boolean;
  /** An alarm NOSPACE was raised, by the log or as far as the member had applied it. */
  readonly isAlarmed: boolean;
  readonly timesAlarmed: number;
  readonly leases: number;
}

export class SpaceCheck {
  readonly #quotaBytes: number;
  readonly #safety: Safety;
  /** Answers and refusals that were looked at. */
  readonly counts = { roomy: 0, full: 0 };

  /** @param quotaBytes 0 for none */
  constructor(quotaBytes: number, safety: Safety) {
    this.#quotaBytes = quotaBytes;
    this.#safety = safety;
  }

  /** A client is about to ask a member. */
  before(member: Member | undefined): SpaceBefore {
    const { alarms } = this.#safety;
    const store = member?.store;
    return {
      member,
      store,
      usedBytes: store?.quotaBytes ?? 0,
      compactedRevision: store?.mvcc.compactedRevision ?? 0,
      isCompacting: store?.mvcc.isCompacting === true,
      isAlarmed: alarms.isNoSpace || store?.alarms.noSpace === true,
      timesAlarmed: alarms.counts.noSpace,
      leases: store?.lessor.count ?? 0,
    };
  }

  /** It has what came of it. @param member the member there now. Throws a Violation. */
  after(op: Operation, before: SpaceBefore, member: Member | undefined): void {
    const { request, outcome } = op;
    const refusal = outcome?.kind === "refused" ? errorNameOf(outcome.error) : undefined;
    if (refusal === "Corrupt" && this.#safety.alarms.counts.corrupt === 0)
      violate("ALARM-2", `no alarm was raised: ${words(op)}`);
    if (refusal === "NoSpace" && !mayAdd(request))
      violate("ALARM-1", `refused for want of space: ${words(op)}`);
    if (this.#quotaBytes === 0 || request.kind !== "put" || request.ignoreValue === true) return;
    if (outcome?.kind === "answered" || refusal === "NoSpace")
      this.#put(op, request, before, this.before(member));
  }

  #put(
    op: Operation,
    { key, value }: { key: string; value: string },
    before: SpaceBefore,
    after: SpaceBefore,
  ): void {
    const { store } = before;
    // What another process or another store had space for is not known.
    if (store === undefined || after.store !== store || after.member !== before.member) return;
    const isCompacted =
      before.isCompacting ||
      after.isCompacting ||
      before.compactedRevision !== after.compactedRevision;
    if (isCompacted) return;
    const costBytes = putCostBytes(
      PutRequest.create({ key: fromLatin1(key), value: fromLatin1(value) }),
    );
    const leaseBytes = MAX_LEASE_RECORD_BYTES * (Math.max(before.leases, after.leases) + 1);
    const used = (one: SpaceBefore) =>
      `${one.usedBytes} bytes of ${this.#quotaBytes} used, ${costBytes} more wanted`;
    if (op.outcome?.kind === "answered") {
      this.counts.roomy++;
      const leastBytes = Math.min(before.usedBytes, after.usedBytes - costBytes) - leaseBytes;
      if (leastBytes + costBytes >= this.#quotaBytes)
        violate("QUOTA-1", `${used(before)}: ${words(op)}`);
      return;
    }
    this.counts.full++;
    if (before.isAlarmed || after.isAlarmed || before.timesAlarmed !== after.timesAlarmed) return;
    const mostBytes = Math.max(before.usedBytes, after.usedBytes) + leaseBytes;
    if (mostBytes + costBytes < this.#quotaBytes)
      violate("QUOTA-2", `${used(after)}, no alarm: ${words(op)}`);
  }
}

/** Whether a request may make the store larger. */
function mayAdd(request: ModelRequest): boolean {
  return request.kind === "put" || (request.kind === "txn" && mayPut(request));
}
