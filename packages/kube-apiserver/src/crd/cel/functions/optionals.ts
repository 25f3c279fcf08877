/** Optional values (cel-go: cel/library.go OptionalTypes). */
import type { Environment } from "../lang/environment.ts";
import { EvaluationError, Optional } from "../lang/values.ts";

function isZero(value: unknown): boolean {
  if (value === null || value === false || value === 0n || value === 0 || value === "") return true;
  if (Array.isArray(value) || value instanceof Uint8Array) return value.length === 0;
  if (value instanceof Map) return value.size === 0;
  return typeof value === "object" && "value" in value && value.value === 0n;
}

export function registerOptionals(environment: Environment): void {
  environment
    .function("optional.of(V): optional<V>", (value: unknown) => Optional.of(value))
    .function("optional.ofNonZeroValue(V): optional<V>", (value: unknown) =>
      isZero(value) ? Optional.none : Optional.of(value),
    )
    .function("optional.none(): optional<V>", () => Optional.none)
    .function("optional<V>.value(): V", ({ value }: Optional) => {
      if (value === undefined) throw new EvaluationError("optional.none() dereference");
      return value;
    })
    .function("optional<V>.hasValue(): bool", ({ isPresent }: Optional) => isPresent)
    .function("optional<V>.or(optional<V>): optional<V>", (one: Optional, other: Optional) =>
      one.isPresent ? one : other,
    )
    .function("optional<V>.orValue(V): V", ({ value }: Optional, other: unknown) =>
      value === undefined ? other : value,
    )
    .function("optional.unwrap(list<optional<V>>): list<V>", unwrap)
    .function("list<optional<V>>.unwrapOpt(): list<V>", unwrap);
}

function unwrap(list: readonly Optional[]): unknown[] {
  return list.filter(({ isPresent }) => isPresent).map(({ value }) => value);
}
