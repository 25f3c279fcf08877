/** What came of an entry, as texts that are equal for equal outcomes. */
import { crc32c, fromUtf8 } from "@quorate/proto";
import type { AppliedEntry } from "@quorate/store";
import { deleteAnswer, putAnswer, txnAnswer } from "../base/codec.ts";
import type { Answer } from "../base/model.ts";

/** The answer of what was applied, as the model has it; undefined for other kinds and errors. */
export function answerOf({ kind, response }: AppliedEntry): Answer | undefined {
  if (response === undefined) return undefined;
  const revision = response.header?.revision ?? 0;
  if (kind === "put") return { revision, succeeded: true, answers: [putAnswer(response)] };
  if (kind === "deleteRange")
    return { revision, succeeded: true, answers: [deleteAnswer(response)] };
  if (kind === "leaseRevoke") return { revision, succeeded: true, answers: [{ kind: "revoke" }] };
  if (kind === "txn") return txnAnswer(response);
  return undefined;
}

/** Answers up to so many characters are kept as they are, longer ones as a digest. */
const MAX_PLAIN_OUTCOME = 200;

/** An answer as text: equal for equal answers. */
export function outcomeOf(answer: Answer): string {
  const [first] = answer.answers;
  const isPlain = answer.answers.length === 1 && first.kind !== "range" && !("previous" in first);
  if (!isPlain) return JSON.stringify(answer);
  return `${answer.revision} ${answer.succeeded} ${first.kind} ${first.kind === "delete" ? first.deleted : ""}`;
}

/** A short text: equal for equal outcomes. */
export function digestOf(outcome: string): string {
  return outcome.length < MAX_PLAIN_OUTCOME
    ? outcome
    : `${crc32c(0, fromUtf8(outcome))} ${outcome.length}`;
}

/** Whether two texts of bytes are equal. */
export function equal(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}
