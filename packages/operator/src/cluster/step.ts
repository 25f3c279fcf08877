/** The steps that a plan can ask for. */
import type { Kind, KubeObject, MergePatch } from "../base/kube.ts";
import type { Leaf } from "./observed.ts";

/** Each with a word and a sentence for people: why it is done. */
export type Step = (
  | { readonly do: "wait"; readonly afterMs: number }
  | { readonly do: "create"; readonly object: KubeObject }
  | {
      readonly do: "patch";
      readonly kind: Kind;
      readonly name: string;
      readonly patch: MergePatch;
      readonly subresource: "" | "status";
    }
  | { readonly do: "remove"; readonly kind: Kind; readonly name: string; readonly uid: string }
  | { readonly do: "make-authority"; readonly stage: AuthorityStage }
  | { readonly do: "issue"; readonly leaf: Leaf }
  | { readonly do: "add-learner"; readonly pod: string; readonly peerUrl: string }
  | { readonly do: "promote"; readonly id: string; readonly pod: string }
  | { readonly do: "remove-member"; readonly id: string; readonly pod: string }
  | {
      readonly do: "move-leader";
      readonly from: string;
      readonly to: string;
      readonly pod: string;
    }
  | { readonly do: "ask-for-users"; readonly isWanted: boolean }
) & { readonly reason: string; readonly why: string };

/** What becomes of the authority: a first one; a next one; that takes over; the old one goes. */
export type AuthorityStage = "first" | "next" | "takeover" | "alone";

/** What a plan rests on besides the observation. */
export interface Rules {
  /** How long files of secrets take to reach all members, and these to read them again. */
  readonly settleMs: number;
}

export function wait(afterMs: number, reason: string, why: string): Step {
  return { do: "wait", afterMs, reason, why };
}

export function create(object: KubeObject, reason: string, why: string): Step {
  return { do: "create", object, reason, why };
}

export function patch(
  kind: Kind,
  name: string,
  fields: MergePatch,
  reason: string,
  why: string,
): Step {
  return { do: "patch", kind, name, patch: fields, subresource: "", reason, why };
}

export function patchStatus(
  kind: Kind,
  name: string,
  status: MergePatch,
  reason: string,
  why: string,
): Step {
  return { do: "patch", kind, name, patch: { status }, subresource: "status", reason, why };
}

export function remove(
  kind: Kind,
  { name, uid }: { readonly name: string; readonly uid: string },
  reason: string,
  why: string,
): Step {
  return { do: "remove", kind, name, uid, reason, why };
}

/** Whether an object has all of the wanted fields; those that others have set do not matter. */
export function hasFields(found: unknown, wanted: unknown): boolean {
  if (typeof wanted !== "object" || wanted === null) return found === wanted;
  const fields = (found ?? {}) as Readonly<Record<string, unknown>>;
  return Object.entries(wanted).every(([name, value]) => hasFields(fields[name], value));
}
