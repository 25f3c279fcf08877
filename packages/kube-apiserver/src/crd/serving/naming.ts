/**
 * Which names a definition has: those that it wants and that no other definition of its group has
 * (apiextensions-apiserver: pkg/controller/status/naming_controller.go).
 */
import { aggregateText, sameJson } from "@quorate/kube-storage";
import { quoteText as goQuote } from "@quorate/proto";
import type { NewCondition } from "../definition/conditions.ts";
import type { Crd, CrdNames } from "../definition/types.ts";

/** The names after the comparison, and the condition NamesAccepted. */
export interface Naming {
  readonly names: CrdNames;
  readonly condition: NewCondition;
}

/** @param others all definitions of the group, this one included */
export function namingOf(crd: Crd, others: Iterable<Crd>): Naming {
  const taken = takenNames(others);
  const wanted = crd.spec.names ?? {};
  const present = crd.status?.acceptedNames ?? {};
  const names: Record<string, unknown> = { ...present };
  // The last conflict is the one that is reported.
  let conflict: NewCondition | undefined;
  const { shortNames = [] } = wanted;
  if (!sameJson(shortNames, present.shortNames ?? [])) {
    const known = new Set(present.shortNames ?? []);
    const clashes = shortNames.filter((name) => !known.has(name) && taken.resources.has(name));
    if (clashes.length === 0) names["shortNames"] = wanted.shortNames;
    else conflict = refused("ShortNamesConflict", aggregateText(clashes.map(inUse)));
  }
  for (const { field, reason, isKind } of NAMES) {
    const name = wanted[field] ?? "";
    const used = isKind ? taken.kinds : taken.resources;
    if (name === (present[field] ?? "") || !used.has(name)) names[field] = name;
    else if (isKind || conflict === undefined) conflict = refused(reason, inUse(name));
  }
  names["categories"] = wanted.categories;
  const set = Object.entries(names).filter(([, value]) => value !== undefined);
  return { names: Object.fromEntries(set) as CrdNames, condition: conflict ?? ACCEPTED };
}

const NAMES = [
  { field: "plural", reason: "PluralConflict", isKind: false },
  { field: "singular", reason: "SingularConflict", isKind: false },
  { field: "kind", reason: "KindConflict", isKind: true },
  { field: "listKind", reason: "ListKindConflict", isKind: true },
] as const;

const ACCEPTED: NewCondition = {
  type: "NamesAccepted",
  status: "True",
  reason: "NoConflicts",
  message: "no conflicts found",
};

function refused(reason: string, message: string): NewCondition {
  return { type: "NamesAccepted", status: "False", reason, message };
}

function inUse(name: string): string {
  return `${goQuote(name)} is already in use`;
}

function takenNames(others: Iterable<Crd>) {
  const resources = new Set<string>();
  const kinds = new Set<string>();
  for (const { status } of others) {
    const { plural, singular, shortNames = [], kind, listKind } = status?.acceptedNames ?? {};
    for (const name of [plural, singular, ...shortNames]) if (name) resources.add(name);
    for (const name of [kind, listKind]) if (name) kinds.add(name);
  }
  return { resources, kinds };
}
