/**
 * Responses of two servers in a form in which they can be equal: indexes become numbers of the
 * writes of the comparison, times vanish, names that a server makes become their order.
 */
import type { V2Response } from "./target.ts";

/** The indexes of one server. */
export class Indexes {
  /** The server's index of each write, in their order. */
  readonly #writes: number[] = [];
  #numbers = new Map<number, number>();

  /** A write has this index. */
  wrote(index: number): void {
    if (this.#numbers.has(index)) return;
    this.#writes.push(index);
    this.#numbers.set(index, this.#writes.length);
  }

  get count(): number {
    return this.#writes.length;
  }

  /** The index of so many writes ago; one that no write has, before the first. */
  ago(writes: number): number {
    return this.#writes.at(-1 - writes) ?? 1_000_000_000;
  }

  number(index: number): string {
    if (index === 0) return "0";
    const number = this.#numbers.get(index);
    if (number !== undefined) return `#${number}`;
    // An index before the first write is the server's own beginning.
    const before = this.#writes.filter((one) => one <= index).length;
    return index === 1_000_000_000 ? "none" : `after #${before}`;
  }
}

const EXPIRATION = /"expiration":"[^"]*"/g;
const INDEX = /"(modifiedIndex|createdIndex|index)":(\d+)/g;
/** Names that POST makes. */
const ORDERED = /\/(0{4}\d{16})/g;
/** Indexes in the reason of a comparison that failed. */
const COMPARED = /\[(\d+) != (\d+)\]"/g;
const CLEARED = /cleared \[\d+\/\d+\]/g;

/** The response as lines of text. */
export function normalised(response: V2Response, indexes: Indexes): string {
  const { status, headers } = response;
  const body = response.body
    .replace(EXPIRATION, '"expiration":"T"')
    .replace(/"ttl":\d+/g, '"ttl":N')
    .replace(
      INDEX,
      (_, name: string, index: string) => `"${name}":${indexes.number(Number(index))}`,
    )
    .replace(ORDERED, (_, name: string) => `/N${indexes.number(Number(name))}`)
    .replace(
      COMPARED,
      (_, a: string, b: string) =>
        `[${indexes.number(Number(a))} != ${indexes.number(Number(b))}]"`,
    )
    .replace(CLEARED, "cleared [N]");
  const index = headers["x-etcd-index"];
  return [
    `${status}`,
    `content-type: ${headers["content-type"] ?? "-"}`,
    `x-etcd-index: ${index === undefined ? "-" : indexes.number(Number(index))}`,
    `x-raft-index: ${headers["x-raft-index"] === undefined ? "-" : "N"}`,
    `x-raft-term: ${headers["x-raft-term"] === undefined ? "-" : "N"}`,
    `x-etcd-cluster-id: ${headers["x-etcd-cluster-id"] === undefined ? "-" : "ID"}`,
    `allow: ${headers["allow"] ?? "-"}`,
    `location: ${headers["location"] ?? "-"}`,
    body,
  ].join("\n");
}
