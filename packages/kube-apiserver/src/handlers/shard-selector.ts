/**
 * The parser of shard selectors, which are CEL without macros (apiserver: pkg/sharding/parser.go):
 *
 *     shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000') || shardRange(…)
 *
 * The ranges of one selector are all of one field.
 */
import { badRequest, SHARD_FIELDS, type ShardRange, ShardSelector } from "@quorate/kube-storage";
import { defined, quoteText as goQuote } from "@quorate/proto";
import type { CallExpr, Expr, Literal } from "../crd/cel/lang/ast.ts";
import { parseExpression } from "../crd/cel/lang/parse.ts";

/** Digits of a bound; one more for 2^64. */
const DIGITS = 16;
const LAST_BOUND = "0x10000000000000000";

/** The numbers that cel-go's texts have for kinds of expressions. */
const KINDS: Readonly<Record<Expr["kind"], number>> = {
  call: 1,
  fold: 2,
  ident: 3,
  list: 4,
  const: 5,
  map: 6,
  select: 7,
  message: 8,
};

type Range = ShardRange & { readonly field: (typeof SHARD_FIELDS)[number] };

/** Throws ApiError 400. */
export function parseShardSelector(text: string): ShardSelector {
  try {
    return selectorOf(text.trim());
  } catch (error) {
    throw badRequest(`invalid shard selector: ${(error as Error).message}`);
  }
}

function selectorOf(text: string): ShardSelector {
  if (text === "")
    throw new SyntaxError(
      "empty shard selector is not allowed; omit the parameter for unfiltered lists",
    );
  const ranges: Range[] = [];
  collect(parsed(text), ranges);
  const { field } = defined(ranges[0], "a range");
  const other = ranges.find((range) => range.field !== field);
  if (other !== undefined) {
    const both = `${goQuote(field)} and ${goQuote(other.field)}`;
    throw new SyntaxError(`all shard ranges must use the same field, got ${both}`);
  }
  return new ShardSelector(field, ranges);
}

function parsed(text: string): Expr {
  try {
    return parseExpression(text, false);
  } catch (error) {
    throw new SyntaxError(`CEL parse error: ${(error as Error).message}`);
  }
}

function collect(expr: Expr, ranges: Range[]): void {
  if (expr.kind !== "call")
    throw new SyntaxError(
      `unexpected expression kind ${KINDS[expr.kind]}; expected shardRange() call or || operator`,
    );
  if (expr.name === "_||_") for (const part of expr.args) collect(part, ranges);
  else if (expr.name === "shardRange") ranges.push(rangeOf(expr));
  else
    throw new SyntaxError(
      `unsupported function ${goQuote(expr.name)}; only shardRange() and || are allowed`,
    );
}

function rangeOf({ args }: CallExpr): Range {
  const [path, first, last] = args;
  if (path === undefined || first === undefined || last === undefined || args.length > 3)
    throw new SyntaxError(`shardRange() requires exactly 3 arguments, got ${args.length}`);
  const name = fieldPath(path);
  const field = SHARD_FIELDS.find((known) => known === name);
  if (field === undefined)
    throw new SyntaxError(
      `unsupported field path ${goQuote(name)}; supported: ${SHARD_FIELDS.join(", ")}`,
    );
  const [start, end] = [boundOf(first, "hexStart"), boundOf(last, "hexEnd")];
  const range = { field, start: BigInt(start), end: BigInt(end) };
  if (range.start < range.end) return range;
  throw new SyntaxError(`shard range start ${start} must be less than end ${end}`);
}

function fieldPath(expr: Expr): string {
  const fields: string[] = [];
  let operand = expr;
  for (; operand.kind === "select"; operand = operand.operand) fields.push(operand.field);
  if (operand.kind === "ident") return [operand.name, ...fields.reverse()].join(".");
  throw new SyntaxError(
    "shardRange() first argument: expected field path (e.g. object.metadata.uid), " +
      `got expression kind ${KINDS[operand.kind]}`,
  );
}

/** The text of a bound: "0x" and 16 digits, or 2^64. */
function boundOf(expr: Expr, name: string): string {
  if (expr.kind !== "const")
    throw new SyntaxError(
      `${name} must be a string literal (e.g. '0xff'), got expression kind ${KINDS[expr.kind]}`,
    );
  const { value } = expr;
  if (typeof value !== "string")
    throw new SyntaxError(`${name} must be a string literal, got ${goType(value)}`);
  const quoted = goQuote(value);
  if (!value.startsWith("0x"))
    throw new SyntaxError(`${name} must have '0x' prefix, got ${quoted}`);
  const digits = value.slice(2);
  if (digits === "") throw new SyntaxError(`${name}: hex value is required after '0x'`);
  if (digits.length > DIGITS + 1)
    throw new SyntaxError(
      `${name}: hex value too long (${digits.length} chars, max ${DIGITS + 1}): ${goQuote(digits)}`,
    );
  const wrong = [...digits].find((digit) => !/[0-9a-f]/.test(digit));
  if (wrong !== undefined)
    throw new SyntaxError(`${name}: invalid hex character ${goQuote(wrong)} in ${quoted}`);
  if (digits.length === DIGITS || value === LAST_BOUND) return value;
  if (digits.length > DIGITS)
    throw new SyntaxError(
      `${name}: 17-digit hex value must be '${LAST_BOUND}' (2^64), got ${quoted}`,
    );
  const padded = goQuote(`0x${digits.padStart(DIGITS, "0")}`);
  throw new SyntaxError(
    `${name} must be a 0x-prefixed 16-digit hex value, got ${quoted} (did you mean ${padded}?)`,
  );
}

/** The name of Go's type of a literal. */
function goType(value: Exclude<Literal, string>): string {
  if (value === null) return "structpb.NullValue";
  if (value instanceof Uint8Array) return "[]uint8";
  if (typeof value === "object") return "uint64";
  return { boolean: "bool", bigint: "int64", number: "float64" }[
    typeof value as "boolean" | "bigint" | "number"
  ];
}
