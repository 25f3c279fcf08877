/**
 * Parts of a collection, by the hash of a field (apimachinery: pkg/sharding). The hashes are all
 * whole numbers below 2^64; a selector has ranges of them.
 */
import { fnv1a64, fromUtf8 } from "@quorate/proto";
import type { AttributesOf, ObjectAttributes, Shard } from "./selectors.ts";

/** The fields whose hashes decide. */
export const SHARD_FIELDS = ["object.metadata.uid", "object.metadata.namespace"] as const;
export type ShardField = (typeof SHARD_FIELDS)[number];

/** The hashes from `start` on that are below `end`. */
export interface ShardRange {
  readonly start: bigint;
  readonly end: bigint;
}

/** Which part of a collection is wanted. */
export class ShardSelector implements Shard {
  readonly #field: ShardField;
  readonly #text: string;
  readonly #ranges: readonly ShardRange[];

  /** @param ranges at least one, each with start < end */
  constructor(field: ShardField, ranges: readonly ShardRange[]) {
    this.#field = field;
    this.#text = ranges
      .map(({ start, end }) => `shardRange(${field}, '${hex(start)}', '${hex(end)}')`)
      .join(" || ");
    this.#ranges = ranges;
  }

  /** Whether the object of these attributes is in the part; they have its uid (withUid). */
  matches({ fields, uid = "" }: ObjectAttributes): boolean {
    const value = this.#field === "object.metadata.uid" ? uid : fields["metadata.namespace"];
    const hash = fnv1a64(fromUtf8(value ?? ""));
    return this.#ranges.some(({ start, end }) => start <= hash && hash < end);
  }

  toString(): string {
    return this.#text;
  }
}

function hex(bound: bigint): string {
  return `0x${bound.toString(16).padStart(16, "0")}`;
}

/** The attributes with the object's uid, which shards need and other selectors do not. */
export function withUid(attributesOf: AttributesOf): AttributesOf {
  return (object) => ({ ...attributesOf(object), uid: object.metadata.uid ?? "" });
}
