/**
 * The error of an apply that changes the fields of other managers (apimachinery:
 * util/managedfields/internal/conflict.go).
 */

import { ApiError, compareUtf8 } from "@quorate/kube-storage";
import { CodedError, defined, quoteText as goQuote } from "@quorate/proto";
import { managerOfId } from "./managed-fields.ts";
import { type Path, pathText } from "./path-element.ts";

/** A field that an apply changes and another manager owns. */
export interface Conflict {
  /** The identifier of the owner (managed-fields.ts). */
  readonly manager: string;
  readonly path: Path;
}

/** Thrown inside of an apply. Who calls it decides whether the conflicts are allowed. */
export class ConflictsError extends CodedError<"Conflicts"> {
  readonly conflicts: readonly Conflict[];

  constructor(conflicts: readonly Conflict[]) {
    super("ConflictsError", "Conflicts", `${conflicts.length} conflicts`);
    this.conflicts = conflicts;
  }
}

/** What the client receives: HTTP 409 with a cause for each field. */
export function conflictError(conflicts: readonly Conflict[]): ApiError {
  const causes = conflicts.map(({ manager, path }) => ({
    reason: "FieldManagerConflict",
    message: `conflict with ${managerText(manager)}`,
    field: pathText(path),
  }));
  return new ApiError(409, "Conflict", messageOf(conflicts), { causes });
}

function messageOf(conflicts: readonly Conflict[]): string {
  const [first, second] = conflicts;
  if (first !== undefined && second === undefined) {
    const { manager, path } = first;
    return `Apply failed with 1 conflict: conflict with ${managerText(manager)}: ${pathText(path)}`;
  }
  const paths = Map.groupBy(conflicts, ({ manager }) => manager);
  const lines: string[] = [];
  for (const manager of [...paths.keys()].sort(compareUtf8)) {
    lines.push(`conflicts with ${managerText(manager)}:`);
    for (const { path } of defined(paths.get(manager), "the path"))
      lines.push(`- ${pathText(path)}`);
  }
  return `Apply failed with ${conflicts.length} conflicts: ${lines.join("\n")}`;
}

function managerText(id: string): string {
  const { manager, operation, apiVersion, subresource } = managerOfId(id);
  let text = goQuote(manager ?? "");
  if (subresource) text += ` with subresource ${goQuote(subresource)}`;
  return operation === "Update" ? `${text} using ${apiVersion}` : text;
}
