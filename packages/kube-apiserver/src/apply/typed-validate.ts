/** Checks a value against its type (structured-merge-diff: typed/validate.go). */
import { goSyntax, goType, goValue } from "./go-text.ts";
import { elementText, type PathElement, pathText } from "./path-element.ts";
import type { ListType, MapType, ScalarType, TypeAtom } from "./typed-schema.ts";
import { fieldTypeOf, formOf, isList, isMap, itemElement, TypedError } from "./typed-value.ts";

/** More errors are not collected. */
const MAX_ERRORS = 100;

/**
 * @param allowDuplicates in stored objects: older versions of a schema may have allowed them
 * @throws TypedError with all errors
 */
export function validateTyped(type: TypeAtom, value: unknown, allowDuplicates: boolean): void {
  const validator = new Validator(allowDuplicates);
  validator.visit(type, value);
  const { errors } = validator;
  if (errors.length === 0) return;
  const all = errors.length === 1 ? errors[0] : ["errors:", ...errors].join("\n  ");
  throw new TypedError(all);
}

class Validator {
  readonly errors: string[] = [];
  readonly #path: PathElement[] = [];
  readonly #allowDuplicates: boolean;

  constructor(allowDuplicates: boolean) {
    this.#allowDuplicates = allowDuplicates;
  }

  visit(type: TypeAtom, value: unknown): void {
    const form = formOf(type, value);
    if (value === null) return;
    if (form.form === "scalar") this.#scalar(form, value);
    else if (form.form === "map") this.#map(form, value);
    else this.#list(form, value);
  }

  #report(message: string): void {
    if (this.errors.length >= MAX_ERRORS) return;
    const path = pathText(this.#path);
    this.errors.push(path === "" ? message : `${path}: ${message}`);
  }

  #scalar(type: ScalarType, value: unknown): void {
    const problem = scalarProblem(type, value);
    if (problem !== undefined) this.#report(problem);
  }

  #map(type: MapType, value: unknown): void {
    if (!isMap(value)) {
      this.#report(`expected map, got &{${goValue(value)}}`);
      return;
    }
    for (const name of Object.keys(value)) {
      const field = fieldTypeOf(type, name);
      this.#path.push(`f:${name}`);
      if (field !== undefined) this.visit(field, value[name]);
      else this.#report("field not declared in schema");
      this.#path.pop();
      if (field === undefined) return;
    }
  }

  #list(type: ListType, value: unknown): void {
    if (!isList(value)) {
      this.#report(`expected list, got &{${goValue(value)}}`);
      return;
    }
    const seen = new Set<PathElement>();
    for (let at = 0; at < value.length; at++) {
      const element = this.#elementAt(type, value[at], at);
      if (element === undefined) return;
      if (!type.atomic) {
        if (seen.has(element) && !this.#allowDuplicates) {
          this.#report(`duplicate entries for key ${elementText(element)}`);
        }
        seen.add(element);
      }
      this.#path.push(element);
      this.visit(type.item, value[at]);
      this.#path.pop();
    }
  }

  #elementAt(type: ListType, item: unknown, at: number): PathElement | undefined {
    if (type.atomic) return `i:${at}`;
    try {
      return itemElement(type, item);
    } catch (error) {
      if (!(error instanceof TypedError)) throw error;
      this.#report(`element ${at}: ${error.message}`);
      return undefined;
    }
  }
}

/** What is wrong with a scalar; undefined if nothing is. */
export function scalarProblem(type: ScalarType, value: unknown): string | undefined {
  if (value === null || value === undefined) return undefined;
  switch (type.kind) {
    case "numeric":
      if (typeof value === "number") return undefined;
      return `expected numeric (int or float), got ${goType(value)}`;
    case "string":
      if (typeof value === "string") return undefined;
      return `expected string, got &value.valueUnstructured{Value:${goSyntax(value)}}`;
    case "boolean":
      if (typeof value === "boolean") return undefined;
      return `expected boolean, got &{${goValue(value)}}`;
    default:
      if (typeof value !== "object") return undefined;
      return `expected any scalar, got &{${goValue(value)}}`;
  }
}
