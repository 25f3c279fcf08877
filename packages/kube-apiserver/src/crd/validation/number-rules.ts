/** The rules of numbers (kube-openapi: pkg/validation/validate/values.go). */

import { invalidValue, type Schema } from "@quorate/kube-storage";
import { goNumber } from "../../apply/go-text.ts";
import { isInt64 } from "./numbers.ts";
import type { Problem, Reporter } from "./problem.ts";

type Bounds = readonly [min: number, max: number];

const INT32: Bounds = [-(2 ** 31), 2 ** 31 - 1];
const INT64: Bounds = [-(2 ** 63), 2 ** 63];

const MAX_FLOAT32 = 3.4028234663852886e38;

/** Returns 1: this check counts as passed when errors of alternatives are compared. */
export function validateNumber(
  validation: Reporter,
  value: number,
  schema: Schema,
  format: string,
  to: Problem[],
): number {
  const type = schema["x-kubernetes-int-or-string"] === true ? "" : (schema.type ?? "");
  const checked = new NumberCheck(validation, value, type, type === "" ? "" : format, to);
  checked.range("Checked", value);
  checked.multipleOf(schema.multipleOf);
  checked.minimum(schema.minimum, schema.exclusiveMinimum === true);
  checked.maximum(schema.maximum, schema.exclusiveMaximum === true);
  return 1;
}

class NumberCheck {
  readonly #validation: Reporter;
  readonly #value: number;
  readonly #type: string;
  readonly #format: string;
  readonly #to: Problem[];

  constructor(validation: Reporter, value: number, type: string, format: string, to: Problem[]) {
    this.#validation = validation;
    this.#value = value;
    this.#type = type;
    this.#format = format;
    this.#to = to;
  }

  /** Whether a number fits the type; reports it where it does not. */
  range(what: string, value: number): boolean {
    if (this.#fits(value)) return true;
    const how = this.#format === "" ? "(default format)" : `with format ${this.#format}`;
    const text = `${what} value must be of type ${this.#type} ${how} in ${this.#validation.where}`;
    this.#validation.reportPlain(this.#to, text);
    return false;
  }

  #fits(value: number): boolean {
    if (this.#type === "integer") {
      const [min, max] = this.#format === "int32" ? INT32 : INT64;
      return isInt64(value) && value >= min && value <= max;
    }
    return this.#format !== "float" || Math.abs(value) <= MAX_FLOAT32;
  }

  #report(text: string): void {
    const value = this.#value;
    this.#validation.report(this.#to, text, (field) => invalidValue(field, value, text));
  }

  /** A bound as it is compared: whole for whole values of a fitting type. */
  #bound(what: string, bound: number): number {
    return this.range(what, bound) && isInt64(this.#value) ? Math.trunc(bound) : bound;
  }

  maximum(max: number | undefined, exclusive: boolean): void {
    if (max === undefined) return;
    const bound = this.#bound("Maximum boundary", max);
    if (exclusive ? this.#value < bound : this.#value <= bound) return;
    const than = exclusive ? "less than" : "less than or equal to";
    this.#report(`${this.#validation.where} in body should be ${than} ${goNumber(bound)}`);
  }

  minimum(min: number | undefined, exclusive: boolean): void {
    if (min === undefined) return;
    const bound = this.#bound("Minimum boundary", min);
    if (exclusive ? this.#value > bound : this.#value >= bound) return;
    const than = exclusive ? "greater than" : "greater than or equal to";
    this.#report(`${this.#validation.where} in body should be ${than} ${goNumber(bound)}`);
  }

  multipleOf(factor: number | undefined): void {
    if (factor === undefined) return;
    const bound = this.#bound("MultipleOf", factor);
    const { where } = this.#validation;
    if (bound <= 0) {
      this.#report(`factor MultipleOf declared for ${where} must be positive: ${goNumber(bound)}`);
      return;
    }
    const times = bound < 1 ? (1 / bound) * this.#value : this.#value / bound;
    const near = Math.abs(times - Math.round(times)) <= 1e-9 * Math.max(1, Math.abs(times));
    if (!near) this.#report(`${where} in body should be a multiple of ${goNumber(bound)}`);
  }
}
