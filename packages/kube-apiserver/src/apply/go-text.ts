/** Values as Go's fmt prints them. Clients compare such texts. */
import { compareUtf8 } from "@quorate/kube-storage";
import { quoteText as goQuote } from "@quorate/proto";

/** A number as %v prints an int64 or a float64. */
export function goNumber(value: number): string {
  if (Number.isSafeInteger(value)) return String(value);
  const [digits, exponent] = value.toExponential().split("e");
  const power = Number(exponent);
  if (power >= -4 && power < 21) return String(value);
  const sign = power < 0 ? "-" : "+";
  return `${digits}e${sign}${String(Math.abs(power)).padStart(2, "0")}`;
}

/** A JSON value as %v prints it: map[a:1 b:[x y]]. */
export function goValue(value: unknown): string {
  if (value === null || value === undefined) return "<nil>";
  if (typeof value === "number") return goNumber(value);
  if (typeof value !== "object") return String(value);
  if (Array.isArray(value)) return `[${value.map(goValue).join(" ")}]`;
  const fields = sortedEntries(value).map(([name, field]) => `${name}:${goValue(field)}`);
  return `map[${fields.join(" ")}]`;
}

/** A JSON value as %#v prints it. */
export function goSyntax(value: unknown): string {
  if (value === null || value === undefined) return "interface {}(nil)";
  if (typeof value === "string") return goQuote(value);
  if (typeof value === "number") return goNumber(value);
  if (typeof value !== "object") return String(value);
  if (Array.isArray(value)) return `[]interface {}{${value.map(goSyntax).join(", ")}}`;
  const fields = sortedEntries(value).map(([name, field]) => `${goQuote(name)}:${goSyntax(field)}`);
  return `map[string]interface {}{${fields.join(", ")}}`;
}

/** The Go type that a JSON value is decoded into. */
export function goType(value: unknown): string {
  if (value === null || value === undefined) return "%!s(<nil>)";
  if (typeof value === "string") return "string";
  if (typeof value === "boolean") return "bool";
  if (typeof value === "number") return Number.isInteger(value) ? "int64" : "float64";
  return Array.isArray(value) ? "[]interface {}" : "map[string]interface {}";
}

/** The fields of an object in the order of Go's maps when they are printed. */
function sortedEntries(value: object): [string, unknown][] {
  const entries = Object.entries(value);
  if (entries.length < 2) return entries;
  return entries.sort(([a], [b]) => compareUtf8(a, b));
}
