/** The rules for the names of a definition, wanted or accepted. */

import type { FieldError } from "@quorate/kube-storage";
import { invalidValue, isDns1035Label, required } from "@quorate/kube-storage";
import { at, child } from "../schema/paths.ts";
import type { CrdNames } from "./types.ts";

const MIXED_CASE = "may have mixed case, but should otherwise match: ";

/** All errors; names that are empty are not judged. */
export function namesErrors(names: CrdNames, path: string): FieldError[] {
  const errors: FieldError[] = [];
  for (const name of ["plural", "singular"] as const) {
    errors.push(...labelErrors(names[name] ?? "", child(path, name)));
  }
  for (const name of ["kind", "listKind"] as const) {
    errors.push(...kindErrors(names[name] ?? "", child(path, name)));
  }
  const { kind = "", listKind = "", shortNames = [], categories = [] } = names;
  for (const [i, name] of shortNames.entries()) {
    errors.push(...labelErrors(name, at(child(path, "shortNames"), i), true));
  }
  if (kind !== "" && kind === listKind) {
    const detail = "kind and listKind may not be the same";
    errors.push(invalidValue(child(path, "listKind"), listKind, detail));
  }
  for (const [i, name] of categories.entries()) {
    errors.push(...labelErrors(name, at(child(path, "categories"), i), true));
  }
  return errors;
}

/** The names that a spec must have. */
export function missingNames(names: CrdNames, path: string): FieldError[] {
  const wanted = ["plural", "singular", "kind", "listKind"] as const;
  const missing = wanted.filter((name) => (names[name] ?? "") === "");
  return missing.map((name) => required(child(path, name)));
}

function labelErrors(name: string, path: string, evenEmpty = false): FieldError[] {
  if (name === "" && !evenEmpty) return [];
  const texts = isDns1035Label(name);
  return texts.length === 0 ? [] : [invalidValue(path, name, texts.join(","))];
}

function kindErrors(kind: string, path: string): FieldError[] {
  if (kind === "") return [];
  const texts = isDns1035Label(kind.toLowerCase());
  return texts.length === 0 ? [] : [invalidValue(path, kind, MIXED_CASE + texts.join(","))];
}
