/** Evaluates expressions here, and says what differs from Kubernetes' results. */
import type { Json, Schema } from "@quorate/kube-storage";
import { PER_CALL_BUDGET } from "../../../src/crd/cel/base/budget.ts";
import { loadCel } from "../../../src/crd/cel/engine.ts";
import { CompileError } from "../../../src/crd/cel/faults.ts";
import { shownType } from "../../../src/crd/cel/lang/types.ts";
import { celTypeOf } from "../../../src/crd/cel/types.ts";
import type { CelCase } from "./expressions.ts";

/** Of one expression. */
export interface Result {
  readonly compile?: string;
  readonly type?: string;
  readonly value?: string;
  readonly error?: string;
  readonly cost: number;
  readonly max: number;
}

const engine = await loadCel();

export function ours({ expr, schema, self }: CelCase): Result {
  const type = schema && celTypeOf(schema as Schema, false);
  const environment = type ? engine.base.extend().variable("self", type.type) : engine.base;
  try {
    const program = engine.compile(expr, "any", environment);
    const value = type?.convert(self as Json);
    const outcome = program.evaluate(
      (name) => (name === "self" ? value : undefined),
      PER_CALL_BUDGET,
    );
    const found = { type: shownType(program.type), max: program.maxCost(type?.type) };
    if (outcome.type === "exceeded") return { ...found, error: "exceeded", cost: 0 };
    if (outcome.type === "error") return { ...found, error: outcome.message, cost: outcome.cost };
    const shown = typeof outcome.value === "object" ? undefined : String(outcome.value);
    return { ...found, ...(shown === undefined ? {} : { value: shown }), cost: outcome.cost };
  } catch (error) {
    if (!(error instanceof CompileError)) throw error;
    return { compile: error.message, cost: 0, max: 0 };
  }
}

/** What differs for a known reason. */
export const KNOWN: readonly RegExp[] = [
  // A constant key of bytes is refused when the program is made.
  /\[dyn\(b''\)\]/,
  // The type of an empty map follows from the order in which overloads are tried.
  /^\{\}\.transformMap/,
  // What has() of nothing costs.
  /^has\(\{\}\.\?x\.y\)$|^has\(optional\.of/,
  // Go says at which character an address is wrong.
  /^ip(?:\.isCanonical)?\("/,
  // A map's order is not defined, and a quantifier ends at the first key that decides.
  /^\{'key1':1, 'key2':2\}\.(?:exists|all)/,
];

const WELL_KNOWN = /google\.protobuf\.(?:Timestamp|Duration)/g;
const shortName = (name: string): string => name.slice("google.protobuf.".length).toLowerCase();

/** What differs; undefined for nothing. */
export function difference(mine: Result, theirs: Result): string | undefined {
  if ((mine.compile === undefined) !== (theirs.compile === undefined)) return "compile";
  if (mine.compile !== undefined) {
    const isSyntax = mine.compile.includes("Syntax error") && theirs.compile?.includes("Syntax");
    const own = mine.compile.replace(/^(?:compilation|program instantiation) failed: /, "");
    return isSyntax || own === theirs.compile ? undefined : "text of the compiler";
  }
  if ((mine.error === undefined) !== (theirs.error === undefined)) return "error";
  if (mine.error !== undefined)
    return mine.error === theirs.error ? undefined : "text of the error";
  const [value, other] = [mine.value, theirs.value ?? ""];
  const isSame = value === other || Number(value) === Number(other.replace("Inf", "Infinity"));
  if (value !== undefined && value !== "null" && !isSame) return "value";
  if (mine.type !== theirs.type?.replace("null_type", "null").replace(WELL_KNOWN, shortName))
    return "type";
  if (mine.cost !== theirs.cost) return "cost";
  // Sums beyond 2^53 are approximate here.
  return mine.max === theirs.max || (mine.max > 2 ** 53 && theirs.max > 2 ** 53)
    ? undefined
    : "estimate";
}
