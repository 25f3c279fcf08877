/**
 * What clients did and saw: the plain record that the judges of histories work on, from the
 * simulator or from real members alike.
 */
import type { Answer, ModelRequest, OpAnswer } from "./model.ts";

/** What a client knows of a request that has ended. */
export type Outcome =
  | { readonly kind: "answered"; readonly answer: Answer }
  /** It took no effect for sure. */
  | { readonly kind: "refused"; readonly error: string }
  /** It may have taken effect, or may still. */
  | { readonly kind: "unknown"; readonly error: string };

/** One request of a client, from its call to what came back. */
export interface Operation {
  readonly client: string;
  readonly request: ModelRequest;
  readonly serializable: boolean;
  /** 0 for the newest. */
  readonly atRevision: number;
  /** Places of the call and of the return in one order of all calls and returns. */
  readonly calledAt: number;
  returnedAt: number | undefined;
  outcome: Outcome | undefined;
}

/** A compaction, as far as clients know. */
export interface CompactionCall {
  readonly revision: number;
  readonly calledAt: number;
  /** When it was answered without an error. */
  answeredAt: number | undefined;
}

/** As JSON, for people: long values are cut. */
export function brief(what: unknown): string {
  const text = JSON.stringify(what, (_key, value) =>
    typeof value === "string" && value.length > 12 ? `${value.slice(0, 12)}~` : value,
  );
  return text.length > 400 ? `${text.slice(0, 400)}...` : text;
}

/** An operation in one line, for people. */
export function words(op: Operation): string {
  const at = op.atRevision > 0 ? ` at ${op.atRevision}` : "";
  const request = brief(op.request);
  const outcome = brief(
    op.outcome?.kind === "answered" ? op.outcome.answer : (op.outcome ?? "none"),
  );
  const times = `[${op.calledAt}, ${op.returnedAt ?? "never"}]`;
  return `${op.client} ${times}${op.serializable ? " serializable" : ""} ${request}${at} -> ${outcome}`;
}

/**
 * Whether an operation wrote, by its answer; true for the end of a lease, which does not show it.
 */
export function changesKeys(request: ModelRequest, answer: Answer): boolean {
  if (request.kind === "range") return false;
  return answer.answers.some(changes);
}

function changes(answer: OpAnswer): boolean {
  if (answer.kind === "delete") return answer.deleted > 0;
  return answer.kind === "txn" ? answer.answers.some(changes) : answer.kind !== "range";
}

/**
 * Names of the errors after which nothing was or will be written. Any other leaves the outcome
 * open.
 */
export const REFUSALS: ReadonlySet<string> = new Set([
  "Compacted",
  "FutureRev",
  "TooManyRequests",
  "RequestTooLarge",
  "NoSpace",
  "EmptyKey",
  "DuplicateKey",
  "LeaseNotFound",
  "KeyNotFound",
  "Corrupt",
  "NotSupportedForLearner",
  "PermissionDenied",
  "UserEmpty",
  "UserNotFound",
  "AuthOldRevision",
  "InvalidAuthToken",
]);
