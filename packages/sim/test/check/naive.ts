/**
 * An obviously right judge of small histories: it tries every order of every choice of what may
 * have taken effect.
 */

import type { Answer } from "../../src/base/model.ts";
import { ModelState } from "../../src/base/model.ts";
import { difference } from "../../src/base/model-difference.ts";
import type { Operation } from "../../src/base/operation.ts";

const BLANK = { create: 0, mod: 0, version: 0 };

/** An answer with its revisions taken out. */
function withoutRevisions(answer: Answer): Answer {
  const answers = answer.answers.map((one) =>
    one.kind === "range" ? { ...one, kvs: one.kvs.map((kv) => ({ ...kv, ...BLANK })) } : one,
  );
  return { ...answer, revision: 0, answers };
}

/** Each lease that some put names may end at any time after that, unasked. */
function leaseEnds(operations: readonly Operation[]): Operation[] {
  return ["0", "1"].flatMap((lease): Operation[] => {
    const named = operations.filter(({ request }) =>
      JSON.stringify(request).includes(`"lease":"${lease}"`),
    );
    if (named.length === 0) return [];
    const calledAt = Math.min(...named.map((op) => op.calledAt));
    const request = { kind: "revoke", lease } as const;
    return [
      {
        client: lease,
        request,
        serializable: false,
        atRevision: 0,
        calledAt,
        returnedAt: undefined,
        outcome: undefined,
      },
    ];
  });
}

/**
 * Whether some order agrees with real time and returns every answer. Operations that were refused,
 * or may be old, are not for it.
 */
export function isLinearizableNaively(
  operations: readonly Operation[],
  revisions: "ignored" | "compared",
): boolean {
  const attempt = (left: readonly Operation[], state: ModelState): boolean => {
    if (left.every(({ outcome }) => outcome?.kind !== "answered")) return true;
    return left.some((op) => {
      const isTooLate = left.some(
        (other) => other.outcome?.kind === "answered" && other.returnedAt! < op.calledAt,
      );
      if (isTooLate) return false;
      const { answer, next } = state.apply(op.request);
      if (op.outcome?.kind === "answered") {
        const wrong =
          revisions === "compared"
            ? difference(answer, op.outcome.answer)
            : difference(withoutRevisions(answer), withoutRevisions(op.outcome.answer));
        if (wrong !== undefined) return false;
      }
      return attempt(
        left.filter((other) => other !== op),
        next,
      );
    });
  };
  return attempt([...operations, ...leaseEnds(operations)], new ModelState());
}
