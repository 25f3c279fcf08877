/** Answers of the model beside those of members. */
import type { Answer, ModelKv, OpAnswer } from "./model.ts";

/** The first difference of two answers in words, or undefined. */
export function difference(expected: Answer, actual: Answer): string | undefined {
  if (expected.revision !== actual.revision)
    return `revision ${actual.revision}, expected ${expected.revision}`;
  if (expected.succeeded !== actual.succeeded) return `succeeded is ${actual.succeeded}`;
  if (isEqual(expected.answers, actual.answers)) return undefined;
  return `answers ${JSON.stringify(actual.answers.map(canonical))}, expected ${JSON.stringify(expected.answers.map(canonical))}`;
}

/** True only for answers that `difference` would find equal; it is there to be fast. */
function isEqual(expected: readonly OpAnswer[], actual: readonly OpAnswer[]): boolean {
  if (expected.length !== actual.length) return false;
  for (let i = 0; i < expected.length; i++) {
    const a = expected[i];
    const b = actual[i];
    if (a.kind !== b.kind) return false;
    if (a.kind === "delete") {
      const other = b as typeof a;
      if (a.deleted !== other.deleted || !areEqual(a.previous ?? [], other.previous ?? []))
        return false;
    }
    if (a.kind === "put") {
      const { previous } = b as typeof a;
      if (!areEqual(a.previous ? [a.previous] : [], previous ? [previous] : [])) return false;
    }
    if (a.kind === "txn") {
      const { succeeded, answers } = b as typeof a;
      if (a.succeeded !== succeeded || !isEqual(a.answers, answers)) return false;
    }
    if (a.kind !== "range") continue;
    const { kvs, count, more } = b as typeof a;
    if ((count !== undefined && a.count !== count) || (more !== undefined && a.more !== more))
      return false;
    if (!areEqual(a.kvs, kvs)) return false;
  }
  return true;
}

function areEqual(expected: readonly ModelKv[], actual: readonly ModelKv[]): boolean {
  if (expected.length !== actual.length) return false;
  for (let j = 0; j < actual.length; j++) {
    const x = expected[j];
    const y = actual[j];
    if (x.key !== y.key || x.value !== y.value || x.mod !== y.mod || x.create !== y.create)
      return false;
    if (x.version !== y.version || (x.lease ?? "") !== (y.lease ?? "")) return false;
  }
  return true;
}

/** All of a pair in a fixed order, for comparing. */
export function kvFields({ key, value, create, mod, version, lease }: ModelKv): readonly unknown[] {
  return [key, value, create, mod, version, lease ?? ""];
}

function canonical(answer: OpAnswer): unknown {
  if (answer.kind === "range")
    return { kvs: answer.kvs.map(kvFields), count: answer.count, more: answer.more };
  if (answer.kind === "txn")
    return { succeeded: answer.succeeded, answers: answer.answers.map(canonical) };
  if (answer.kind === "delete") {
    const { deleted, previous } = answer;
    return previous === undefined ? deleted : { deleted, previous: previous.map(kvFields) };
  }
  if (answer.kind === "put" && answer.previous !== undefined)
    return { put: kvFields(answer.previous) };
  return answer.kind;
}
