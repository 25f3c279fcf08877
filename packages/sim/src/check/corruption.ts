/**
 * Members whose stores differ, and what must come of it:
 *
 *   CORRUPT-1 no false alarm  an alarm CORRUPT names a member whose store was altered; 0 is named
 *                             only where one was; and a member that
 *                             refuses to start because it differs from others does so only then
 *   CORRUPT-2 found           while members compare themselves, one that differs is named soon
 *                             after all else is well
 *   CORRUPT-3 not served      with --self-heal, a member that has applied the alarm which names it
 *                             answers no read with what differs
 *   CORRUPT-4 rebuilt         with --self-heal, it is soon like the others again, and the alarm has
 *                             ended
 */
import type { Answer, ModelRequest, ModelState, OpAnswer } from "../base/model.ts";
import { difference } from "../base/model-difference.ts";
import { violate } from "../base/violation.ts";

export class CorruptionCheck {
  /** Members that were altered at some time. */
  readonly #altered = new Set<bigint>();
  /** Altered members that were named since. */
  readonly #named = new Set<bigint>();
  /** What happened, for the record. */
  readonly counts = { altered: 0, named: 0, unnamed: 0, wrongAnswers: 0 };

  /** Whether a store was altered in this run. */
  get isAnyAltered(): boolean {
    return this.#altered.size > 0;
  }

  /** A member's store was altered. @param memberId 0n if it never ran */
  altered(memberId: bigint): void {
    this.counts.altered++;
    this.#altered.add(memberId);
    this.#named.delete(memberId);
  }

  /** An alarm CORRUPT is in the log, and was not raised before. */
  raised(memberId: bigint): void {
    if (memberId === 0n) {
      this.counts.unnamed++;
      if (!this.isAnyAltered)
        violate("CORRUPT-1", "the alarm is raised for the whole cluster, and no store was altered");
      return;
    }
    this.counts.named++;
    if (!this.#altered.has(memberId))
      violate(
        "CORRUPT-1",
        `the alarm names the member ${memberId.toString(16)}, whose store was not altered`,
      );
    this.#named.add(memberId);
  }

  /** Whether a member was named since its store was altered last. */
  isNamed(memberId: bigint): boolean {
    return this.#named.has(memberId);
  }

  /**
   * A client has an answer of a member whose store was altered. True if it is what the model says,
   * or nothing that the difference shows in.
   * @param state the model at the revision that was read
   * @param isStrict the member had applied the alarm before it was asked, and heals itself
   */
  isRight(
    name: string,
    request: ModelRequest,
    answer: Answer,
    state: ModelState | undefined,
    isStrict: boolean,
  ): boolean {
    if (request.kind === "put" || request.kind === "delete") return request.prevKv !== true;
    if (request.kind === "revoke") return true;
    // What a transaction reads is judged where it is applied; an altered member may have given
    // another answer.
    if (request.kind === "txn") return !showsKeys(answer.answers);
    const wrong =
      state === undefined
        ? undefined
        : difference({ ...state.apply(request).answer, revision: answer.revision }, answer);
    if (wrong === undefined) return true;
    this.counts.wrongAnswers++;
    if (isStrict)
      violate("CORRUPT-3", `${name} differs from the others, knows it, and answers: ${wrong}`);
    return false;
  }
}

/** Whether answers have keys in them, which an altered store may have in another form. */
function showsKeys(answers: readonly OpAnswer[]): boolean {
  return answers.some((one) => {
    if (one.kind === "txn") return showsKeys(one.answers);
    return one.kind === "range" || (one.kind !== "revoke" && one.previous !== undefined);
  });
}
