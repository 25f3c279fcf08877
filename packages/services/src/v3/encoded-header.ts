/** The header of responses, encoded once for many of them. */
import type { Member } from "@quorate/member";
import { RangeResponse } from "@quorate/proto";
import type { CommonMessage } from "@quorate/rpc";

/**
 * A response's header of now, encoded once for all responses between two changes: what they have in
 * common.
 */
export class EncodedHeader {
  readonly #member: Member;
  #revision = -1;
  #term = -1;
  #field: CommonMessage | undefined;

  constructor(member: Member) {
    this.#member = member;
  }

  /** The field `header`, which is the first of every response; the others may follow it. */
  now(): CommonMessage {
    const member = this.#member;
    const revision = member.store.mvcc.currentRevision;
    const { term } = member;
    if (this.#field !== undefined && revision === this.#revision && term === this.#term)
      return this.#field;
    const header = member.header(revision);
    const before = RangeResponse.encode({ header }).slice();
    this.#revision = revision;
    this.#term = term;
    this.#field = { before, after: [], sizeBytes: before.length };
    return this.#field;
  }
}
